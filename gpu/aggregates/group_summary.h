#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Leaves of a group, and of a line within it.
inline constexpr uint32_t kGroupLeaves = 256, kLineLeaves = 16;

// What stretches of leaves come to: the least number (uint32_t, uint64_t) or the sum (double). A
// leaf is a primary one with all that it is linked to.
//
// The table answers for groups [a, b], a < b, by two reads, and nothing is counted twice, so that
// sums do as well as extremes (a disjoint sparse table): where the highest bit in which a and b
// differ is k, level k has, for each group of a half of 2^k groups, what it comes to with those
// between it and the middle.
template <typename Value>
struct GroupSummary {
  DeviceBuffer<Value> leaves;  // of each leaf, to whole groups; what is behind the last is nothing
  DeviceBuffer<Value> lines;   // of each line of leaves
  DeviceBuffer<Value> table;   // [levels][groups]; level 0 has the groups themselves
  uint32_t groups = 0;

  size_t memory_bytes() const { return leaves.bytes() + lines.bytes() + table.bytes(); }
};

// What the leaves of a group before and behind each leaf come to.
template <typename Value>
struct GroupOutside {
  DeviceBuffer<Value> before, behind;
};

// Of leaves with values [first[i], first[i + 1]), at least one leaf.
template <typename Value>
absl::StatusOr<GroupSummary<Value>> SummariseGroups(const Value* values, const Position* first,
                                                    size_t leaves, GroupOutside<Value>* outside,
                                                    cudaStream_t stream);

}  // namespace cairn::gpu
