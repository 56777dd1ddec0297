#include "gpu/entry_array.h"

#include <utility>

#include "gpu/cuda_status.h"
#include "gpu/launch.h"

namespace cairn::gpu {
namespace {

template <typename Key>
__global__ void Interleave(const Key* keys, const RowId* row_ids, size_t size, uint32_t* words) {
  ForEachIndex(size, [=](size_t i) {
    if constexpr (sizeof(Key) == 4) {
      reinterpret_cast<uint2*>(words)[i] = make_uint2(keys[i], row_ids[i]);
    } else {
      words[3 * i] = static_cast<uint32_t>(keys[i]);
      words[3 * i + 1] = static_cast<uint32_t>(keys[i] >> 32);
      words[3 * i + 2] = row_ids[i];
    }
  });
}

}  // namespace

template <typename Key>
absl::StatusOr<EntryArray<Key>> ArrangeEntries(DeviceRun<Key> run, EntryLayout layout,
                                               cudaStream_t stream) {
  EntryArray<Key> entries;
  entries.layout = layout;
  if (layout == EntryLayout::kSoA) {
    entries.keys = std::move(run.keys);
    entries.row_ids = std::move(run.row_ids);
    return entries;
  }
  const size_t size = run.size();
  absl::StatusOr<DeviceBuffer<uint32_t>> words =
      DeviceBuffer<uint32_t>::Allocate(size * EntryView<Key, EntryLayout::kAoS>::kStride, stream);
  if (!words.ok()) return words.status();
  entries.words = *std::move(words);
  Interleave<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(run.keys.data(), run.row_ids.data(),
                                                                size, entries.words.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("Interleave");
  run.keys.SetStream(stream);
  run.row_ids.SetStream(stream);
  return entries;
}

template absl::StatusOr<EntryArray<uint32_t>> ArrangeEntries(DeviceRun<uint32_t>, EntryLayout,
                                                             cudaStream_t);
template absl::StatusOr<EntryArray<uint64_t>> ArrangeEntries(DeviceRun<uint64_t>, EntryLayout,
                                                             cudaStream_t);

}  // namespace cairn::gpu
