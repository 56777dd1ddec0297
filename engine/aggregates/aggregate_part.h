#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/group_results.h"

// What one shard has for a batch's aggregates, as the bytes that travel to where all are put
// together (ShardMap). They are read by the version of Cairn that wrote them, on a machine of its
// kind: little-endian numbers, as they lie in memory, behind what was asked.
namespace cairn {

// Of `ranges` ranges, of an index with keys of this kind. Throw std::bad_alloc.
std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, size_t ranges,
                       const AggregateResults& results);
std::string EncodePart(const AggregatePlan& plan, PhysicalType kind, const GroupResults& groups);

// The results of `ranges` ranges again. InvalidArgument where the bytes are none, or are of another
// question. Throw std::bad_alloc.
absl::StatusOr<AggregateResults> DecodeRanges(const AggregatePlan& plan, PhysicalType kind,
                                              size_t ranges, std::string_view part);
absl::StatusOr<GroupResults> DecodeGroups(const AggregatePlan& plan, PhysicalType kind,
                                          size_t ranges, std::string_view part);

}  // namespace cairn
