#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/group_results.h"

// One shard's part of the results of a batch's aggregates, as bytes that are sent to the machine
// that combines all parts (ShardMap).
// The bytes start with a description of the request. Numbers follow as they are in memory,
// little-endian. Only the same version of Cairn on the same kind of machine can read them.
namespace cairn {

// Encode the results of `ranges` ranges, for an index with keys of this kind. Throw std::bad_alloc.
std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, size_t ranges,
                       const AggregateResults& results);
std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, const GroupResults& groups);

// Decode the results of `ranges` ranges. InvalidArgument: the bytes are not a part, or are a part
// of another request. Throw std::bad_alloc.
absl::StatusOr<AggregateResults> DecodeRanges(const AggregatePlan& plan, PhysicalType kind,
                                              size_t ranges, std::string_view part);
absl::StatusOr<GroupResults> DecodeGroups(const AggregatePlan& plan, PhysicalType kind,
                                          size_t ranges, std::string_view part);

}  // namespace cairn
