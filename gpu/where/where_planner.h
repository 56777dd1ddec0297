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

// What the planner knows of a group.
struct WhereGroupFacts {
  uint64_t rows = 0;
  absl::Span<const KeySample> columns;
  size_t shared_bytes = 0;  // of a block of the device
};

// Rows of a part that kBitmap looks at at once, as bits; a part has 2^bits rows.
inline constexpr int kMinPartBits = 13, kMaxPartBits = 19;
inline constexpr uint64_t kMaxParts = 2048;

// All that the host decides about a predicate.
struct WhereDecision {
  DeviceWherePlan plan;
  std::vector<WhereSet> sets;
  std::vector<EntryEstimate> entries;  // of each set
  WhereProgram program;
  size_t driver = 0;  // of kGather: the set whose rows are tested, and what for
  WhereProgram rest;
  int part_bits = 0;  // of kBitmap
};

// Chooses a strategy by what each is predicted to cost, or takes `wanted`. InvalidArgument as
// DeviceIndexGroup::Explain. Throws std::bad_alloc.
absl::StatusOr<WhereDecision> DecideWhere(const DevicePredicate& where,
                                          const WhereGroupFacts& group, bool only_count,
                                          DeviceWhereStrategy wanted);

}  // namespace cairn::gpu
