#include "gpu/run/entry_array.h"

#include <utility>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Key>
__global__ void PutInOrder(const Key* keys, const RowId* row_ids, size_t size,
                           EntryWriter<Key> entries) {
  ForEachIndex(size, [=](size_t i) { entries.Put(i, keys[i], row_ids[i]); });
}

}  // namespace

template <typename Key>
absl::StatusOr<EntryArray<Key>> PairEntries(const DeviceRun<Key>& run, cudaStream_t stream) {
  const size_t size = run.size();
  RETURN_IF_ERROR(CheckDeviceMemory(EntryArray<Key>::BytesOf(size), "entries as pairs"));
  ASSIGN_OR_RETURN(EntryArray<Key> entries,
                   EntryArray<Key>::Allocate(size, EntryLayout::kAoS, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutInOrder", SimpleShape(size), stream, PutInOrder<Key>,
                               run.keys.data(), run.row_ids.data(), size, entries.writer());
  return entries;
}

template <typename Key>
absl::StatusOr<EntryArray<Key>> ArrangeEntries(DeviceRun<Key> run, EntryLayout layout,
                                               cudaStream_t stream) {
  if (layout == EntryLayout::kSoA) return EntryArray<Key>(std::move(run));
  absl::StatusOr<EntryArray<Key>> entries = PairEntries(run, stream);
  run.keys.SetStream(stream);
  run.row_ids.SetStream(stream);
  return entries;
}

template absl::StatusOr<EntryArray<uint32_t>> PairEntries(const DeviceRun<uint32_t>&, cudaStream_t);
template absl::StatusOr<EntryArray<uint64_t>> PairEntries(const DeviceRun<uint64_t>&, cudaStream_t);
template absl::StatusOr<EntryArray<uint32_t>> ArrangeEntries(DeviceRun<uint32_t>, EntryLayout,
                                                             cudaStream_t);
template absl::StatusOr<EntryArray<uint64_t>> ArrangeEntries(DeviceRun<uint64_t>, EntryLayout,
                                                             cudaStream_t);

}  // namespace cairn::gpu
