#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/layout/pivot_layout.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// Writes every slot's pivot, each by a formula (section 3.5).
template <typename Key, int kFanOut>
__global__ void PutPivots(const Key* keys, const __grid_constant__ PivotLayout<kFanOut> layout,
                          Key* pivots) {
  ForEachIndex(layout.slots(), [&](size_t slot) {
    const uint64_t entry = layout.EntryOfSlot(slot);
    pivots[slot] = entry < layout.entries() ? keys[entry] : std::numeric_limits<Key>::max();
  });
}

// The pivots over keys in run order. Enqueued on `stream`.
template <typename Key, int kFanOut>
absl::StatusOr<DeviceBuffer<Key>> BuildPivots(const Key* keys, const PivotLayout<kFanOut>& layout,
                                              cudaStream_t stream) {
  RETURN_IF_ERROR(CheckDeviceMemory(layout.slots() * sizeof(Key), "a pivot tree"));
  ASSIGN_OR_RETURN(DeviceBuffer<Key> pivots, DeviceBuffer<Key>::Allocate(layout.slots(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutPivots", SimpleShape(layout.slots()), stream,
                               PutPivots<Key, kFanOut>, keys, layout, pivots.data());
  return pivots;
}

}  // namespace cairn::gpu
