#include "gpu/search/sorted_array.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/search/array_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Queries are reordered, 2048 in a block, where the first-level caches hold little of the entries
// and there are enough blocks to fill the device. For 2^27 queries on an H200, 32-bit keys, that
// takes 8.9 ms in place of 10.4 among 2^20 entries, 13.7 of 16.3 among 2^24, 27.5 of 45 among 2^28
// (cairn_bench, Lightweight/AO+BS). Pinning, static schedules and more queries in flight gained
// nothing there.
constexpr size_t kCachedBytes = size_t{4} << 20;
constexpr size_t kManyQueries = size_t{1} << 20;

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
    if (this->entry_bytes() > kCachedBytes && keys.size() >= kManyQueries) {
      using Sorted = SearchPolicy<128, 16, 1, Reorder::kDouble>;
      return SearchBatch<Sorted>(searcher, this->size(), query, keys, results, stream);
    }
    return SearchBatch<SearchPolicy<256>>(searcher, this->size(), query, keys, results, stream);
  }
};

template <typename Key, EntryLayout kLayout>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(DeviceRun<Key> run, cudaStream_t stream) {
  const size_t size = run.size();
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  ASSIGN_OR_RETURN(EntryArray<Key> entries, ArrangeEntries(std::move(run), kLayout, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
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
