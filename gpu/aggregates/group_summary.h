#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Leaves per group, and per line within it.
inline constexpr uint32_t kGroupLeaves = 256, kLineLeaves = 16;

// The combined values of ranges of leaves: the minimum (uint32_t, uint64_t) or the sum (double). A
// leaf means a primary leaf with all its linked leaves.
//
// The table returns the result of groups [a, b], a < b, with two reads. No value is counted twice,
// so this works for sums as well as for minimums (a disjoint sparse table). Let k be the highest
// bit in which a and b differ. Level k consists of halves of 2^k groups, and has for each group the
// combined value of the groups from it to the middle.
template <typename Value>
struct GroupSummary {
  DeviceBuffer<Value> leaves;  // one per leaf, padded to whole groups with Nothing()
  DeviceBuffer<Value> lines;   // one per line of leaves
  DeviceBuffer<Value> table;   // [levels][groups]; level 0 has the groups themselves
  uint32_t groups = 0;

  size_t memory_bytes() const { return leaves.bytes() + lines.bytes() + table.bytes(); }
};

// The combined values of a group's leaves before and after each leaf.
template <typename Value>
struct GroupOutside {
  DeviceBuffer<Value> before, behind;
};

// Summarizes at least one leaf; leaf i has the values [first[i], first[i + 1]).
template <typename Value>
absl::StatusOr<GroupSummary<Value>> SummariseGroups(const Value* values, const Position* first,
                                                    size_t leaves, GroupOutside<Value>* outside,
                                                    cudaStream_t stream);

}  // namespace cairn::gpu
