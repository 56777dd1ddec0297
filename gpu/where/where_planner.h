#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device/index_group.h"
#include "gpu/where/key_sample.h"
#include "gpu/where/where_program.h"
#include "gpu/where/where_tree.h"

namespace cairn::gpu {

// The properties of a group that the planner uses.
struct WhereGroupFacts {
  uint64_t rows = 0;
  absl::Span<const KeySample> columns;
  size_t shared_bytes = 0;  // per block of the device
};

// Rows of a kBitmap partition, in bits: a partition has 2^bits rows.
inline constexpr int kMinPartBits = 13, kMaxPartBits = 19;
inline constexpr uint64_t kMaxParts = 2048;

// All decisions of the host about a predicate.
struct WhereDecision {
  DeviceWherePlan plan;
  std::vector<WhereSet> sets;
  std::vector<EntryEstimate> entries;  // one per set
  WhereProgram program;
  size_t driver = 0;  // for kGather: the set whose rows are tested, and the program that tests them
  WhereProgram rest;
  int part_bits = 0;  // for kBitmap
};

// Chooses the strategy with the lowest predicted cost, or uses `wanted`. Errors: InvalidArgument
// like DeviceIndexGroup::Explain. Throws std::bad_alloc.
absl::StatusOr<WhereDecision> DecideWhere(const DevicePredicate& where,
                                          const WhereGroupFacts& group, bool only_count,
                                          DeviceWhereStrategy wanted);

}  // namespace cairn::gpu
