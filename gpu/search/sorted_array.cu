#include "gpu/search/sorted_array.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/search/array_searcher.cuh"
#include "gpu/search/double_reordering.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Key, EntryLayout kLayout>
class SortedArray final : public EntryIndex<Key, kLayout> {
 public:
  SortedArray(EntryArray<Key> entries, size_t size, int device)
      : EntryIndex<Key, kLayout>(std::move(entries), size, device) {}

  std::string description() const override {
    return absl::StrFormat("gpu:sorted_array%s", LayoutOption(kLayout));
  }
  uint64_t memory_bytes() const override { return this->entry_bytes(); }

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override {
    const ArraySearcher<Key, kLayout> searcher(this->view(), this->size());
    return SearchBatchReordered<SearchPolicy<256>>(searcher, this->entry_bytes(), this->size(),
                                                   query, keys, results, stream);
  }
};

template <typename Key, EntryLayout kLayout>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(DeviceRun<Key> run, cudaStream_t stream) {
  const size_t size = run.size();
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  ASSIGN_OR_RETURN(EntryArray<Key> entries, ArrangeEntries(std::move(run), kLayout, stream));
  RETURN_IF_ERROR(NoteUse(device, stream));
  entries.SetStream(AfterAllUses());
  return std::make_unique<SortedArray<Key, kLayout>>(std::move(entries), size, device);
}

}  // namespace

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildSortedArray(DeviceRun<Key> run,
                                                              const SortedArrayOptions& options,
                                                              cudaStream_t stream) {
  return options.layout == EntryLayout::kAoS
             ? Build<Key, EntryLayout::kAoS>(std::move(run), stream)
             : Build<Key, EntryLayout::kSoA>(std::move(run), stream);
}

template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildSortedArray(DeviceRun<uint32_t>,
                                                                       const SortedArrayOptions&,
                                                                       cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildSortedArray(DeviceRun<uint64_t>,
                                                                       const SortedArrayOptions&,
                                                                       cudaStream_t);

}  // namespace cairn::gpu
