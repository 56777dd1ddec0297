#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/where/index_group.h"
#include "engine/where/where_node.h"
#include "engine/where/where_search.h"

namespace cairn {

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
