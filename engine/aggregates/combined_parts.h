#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/sharding.h"
#include "engine/aggregates/aggregate_plan.h"

namespace cairn {

// Implement ShardMap::CombineRanges and CombineGroups for a plan and its index's keys. Throw
// std::bad_alloc.
absl::Status CombineRangeParts(const AggregatePlan& plan, const KeyCodec& codec, size_t ranges,
                               absl::Span<const AggregatePart> parts,
                               std::vector<ColumnValues>* values);
absl::Status CombineGroupParts(const AggregatePlan& plan, const KeyCodec& codec, size_t ranges,
                               size_t leading_parts, const QueryOptions& options,
                               absl::Span<const AggregatePart> parts,
                               AggregateGroupsResult* groups);

}  // namespace cairn
