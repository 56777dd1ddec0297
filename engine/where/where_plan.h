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

// The index in WherePlan::comparisons of each comparison.
using PlanPlaces = std::map<std::string, size_t>;

// Adds a comparison to a plan. Comparisons of the shards of one index are merged.
void AddComparison(WherePlan::Comparison comparison, PlanPlaces* places, WherePlan* plan);

// The purpose of a predicate's rows.
struct WhereGoal {
  bool only_count = false;
  std::optional<size_t> order_by;  // the order's index: its only or first shard, as a member's
                                   // number
  uint64_t limit = UINT64_MAX;
};

// Chooses the strategy with the lowest predicted cost, or `wanted` if that is set. InvalidArgument:
// `wanted` does not support the query. Throws std::bad_alloc.
absl::StatusOr<WherePlan> PlanWhere(const WhereNode& node, const GroupMembers& members,
                                    const WhereSearch& search, const WhereGoal& goal,
                                    WhereStrategy wanted);

}  // namespace cairn
