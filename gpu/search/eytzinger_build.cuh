#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/layout/eytzinger_layout.h"
#include "gpu/run/device_run.h"
#include "gpu/run/entry_array.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// Unused slots before the first one. With a fan-out of 2 there is one, so that siblings begin at
// even positions and the nodes of a small subtree share a sector (section 3.2). Wider nodes need
// none.
template <int kFanOut>
constexpr size_t kEytzingerSlotsBefore = kFanOut == 2 ? 1 : 0;

// The entries of an array made by ArrangeEytzinger, from the first slot on.
template <int kFanOut, EntryLayout kLayout, typename Key>
EntryView<Key, kLayout> EytzingerView(const EntryArray<Key>& entries) {
  return entries.template view<kLayout>().From(kEytzingerSlotsBefore<kFanOut>);
}

// Writes every slot's entry, each by a formula (section 3.5).
template <typename Key, int kFanOut>
__global__ void PutInEytzingerOrder(const Key* keys, const RowId* row_ids,
                                    EytzingerLayout<kFanOut> layout, EntryWriter<Key> entries) {
  if constexpr (kEytzingerSlotsBefore<kFanOut> == 1) {
    if (blockIdx.x == 0 && threadIdx.x == 0) entries.Put(0, 0, kNoRow);
  }
  ForEachIndex(layout.slots(), [=](size_t slot) {
    Key key = std::numeric_limits<Key>::max();
    RowId row_id = kNoRow;
    if (slot < layout.entries()) {
      const uint32_t rank = layout.RankOfSlot(static_cast<uint32_t>(slot));
      key = keys[rank];
      row_id = row_ids[rank];
    }
    entries.Put(kEytzingerSlotsBefore<kFanOut> + slot, key, row_id);
  });
}

// A run's entries in Eytzinger order, in whole nodes, after the unused slots. Enqueued on `stream`.
template <typename Key, int kFanOut>
absl::StatusOr<EntryArray<Key>> ArrangeEytzinger(const DeviceRun<Key>& run, EntryLayout layout,
                                                 cudaStream_t stream) {
  const EytzingerLayout<kFanOut> order(run.size());
  const size_t slots = kEytzingerSlotsBefore<kFanOut> + order.slots();
  RETURN_IF_ERROR(CheckDeviceMemory(EntryArray<Key>::BytesOf(slots), "entries in Eytzinger order"));
  ASSIGN_OR_RETURN(EntryArray<Key> entries, EntryArray<Key>::Allocate(slots, layout, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutInEytzingerOrder", SimpleShape(slots), stream,
                               PutInEytzingerOrder<Key, kFanOut>, run.keys.data(),
                               run.row_ids.data(), order, entries.writer());
  return entries;
}

}  // namespace cairn::gpu
