#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/layout/tree_layout.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// Writes every separator of a level, each by a formula.
template <typename Key>
__global__ void PutSeparators(const Key* keys, const __grid_constant__ TreeLayout<Key> layout,
                              int level, Key* lines) {
  constexpr size_t kLineKeys = TreeLayout<Key>::kLineKeys;
  ForEachIndex(layout.nodes(level) * kLineKeys, [&](size_t i) {
    const size_t node = i / kLineKeys, slot = i % kLineKeys;
    const uint64_t entry = layout.SeparatorEntry(level, node, slot);
    lines[layout.Line(level, node) * kLineKeys + slot] =
        entry < layout.entries() ? keys[entry] : std::numeric_limits<Key>::max();
  });
}

// The inner nodes over keys in run order. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> BuildFastNodes(const Key* keys, const TreeLayout<Key>& layout,
                                                 cudaStream_t stream) {
  const size_t size = layout.lines() * TreeLayout<Key>::kLineKeys;
  RETURN_IF_ERROR(CheckDeviceMemory(size * sizeof(Key), "a FAST tree"));
  ASSIGN_OR_RETURN(DeviceBuffer<Key> lines, DeviceBuffer<Key>::Allocate(size, stream));
  for (int level = 0; level < layout.levels(); ++level) {
    const size_t slots = layout.nodes(level) * TreeLayout<Key>::kLineKeys;
    CAIRN_RETURN_IF_LAUNCH_FAILS("PutSeparators", SimpleShape(slots), stream, PutSeparators<Key>,
                                 keys, layout, level, lines.data());
  }
  return lines;
}

}  // namespace cairn::gpu
