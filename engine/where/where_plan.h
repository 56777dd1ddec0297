#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/index_group.h"
#include "engine/where/where_node.h"
#include "engine/where/where_search.h"

namespace cairn {

// Where a plan's comparisons are in it.
using PlanPlaces = std::map<std::string, size_t>;

// Adds a comparison to a plan; those of the shards of one index become one.
void AddComparison(WherePlan::Comparison comparison, PlanPlaces* places, WherePlan* plan);

// What a predicate's rows are wanted for.
struct WhereGoal {
  bool only_count = false;
  std::optional<size_t> order_by;  // a member's number: an index's only shard, or its first
  uint64_t limit = UINT64_MAX;
};

// Chooses a strategy by what each is predicted to cost, or takes `wanted`, if that can answer.
// InvalidArgument where it cannot. Throws std::bad_alloc.
absl::StatusOr<WherePlan> PlanWhere(const WhereNode& node, const GroupMembers& members,
                                    const WhereSearch& search, const WhereGoal& goal,
                                    WhereStrategy wanted);

}  // namespace cairn
