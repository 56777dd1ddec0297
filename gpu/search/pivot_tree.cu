#include "gpu/search/pivot_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/search/double_reordering.cuh"
#include "gpu/search/pivot_build.cuh"
#include "gpu/search/pivot_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Key, int kFanOut, EntryLayout kLayout>
class PivotTree final : public EntryIndex<Key, kLayout> {
 public:
  PivotTree(EntryArray<Key> entries, DeviceBuffer<Key> pivots, const PivotLayout<kFanOut>& layout,
            int device)
      : EntryIndex<Key, kLayout>(std::move(entries), layout.entries(), device),
        pivots_(std::move(pivots)),
        layout_(layout) {}

  std::string description() const override {
    return absl::StrFormat("gpu:pivot,k=%d,levels=%d%s", kFanOut, layout_.levels(),
                           LayoutOption(kLayout));
  }
  uint64_t memory_bytes() const override { return this->entry_bytes() + pivots_.bytes(); }

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override {
    constexpr int kLanes = LanesOfNode<Key>(kFanOut);
    const PivotSearcher<Key, kFanOut, kLayout, kLanes> searcher(pivots_.data(), this->view(),
                                                                layout_);
    if constexpr (kLanes == 1) {
      return SearchBatchReordered<SearchPolicy<256>>(searcher, memory_bytes(), this->size(), query,
                                                     keys, results, stream);
    } else {
      return SearchBatch<SearchPolicy<256, 2>>(searcher, this->size(), query, keys, results,
                                               stream);
    }
  }

  DeviceBuffer<Key> pivots_;
  PivotLayout<kFanOut> layout_;
};

template <typename Key, int kFanOut>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(DeviceRun<Key> run,
                                                   const PivotTreeOptions& options,
                                                   cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  const int full = PivotLayout<kFanOut>::FullLevels(run.size());
  const int otherwise = kFanOut == 2 ? std::max(full - 4, 0) : full;
  const PivotLayout<kFanOut> layout(run.size(), options.levels < 0 ? otherwise : options.levels);
  ASSIGN_OR_RETURN(DeviceBuffer<Key> pivots,
                   BuildPivots<Key, kFanOut>(run.keys.data(), layout, stream));
  ASSIGN_OR_RETURN(EntryArray<Key> entries, ArrangeEntries(std::move(run), options.layout, stream));
  RETURN_IF_ERROR(NoteUse(device, stream));
  entries.SetStream(AfterAllUses());
  pivots.SetStream(AfterAllUses());
  if (options.layout == EntryLayout::kAoS) {
    return std::make_unique<PivotTree<Key, kFanOut, EntryLayout::kAoS>>(
        std::move(entries), std::move(pivots), layout, device);
  }
  return std::make_unique<PivotTree<Key, kFanOut, EntryLayout::kSoA>>(
      std::move(entries), std::move(pivots), layout, device);
}

}  // namespace

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPivotTree(DeviceRun<Key> run,
                                                            const PivotTreeOptions& options,
                                                            cudaStream_t stream) {
  switch (options.fan_out) {
    case 2:
      return Build<Key, 2>(std::move(run), options, stream);
    case 9:
      return Build<Key, 9>(std::move(run), options, stream);
    case 17:
      return Build<Key, 17>(std::move(run), options, stream);
    case 33:
      return Build<Key, 33>(std::move(run), options, stream);
    default:
      return absl::InvalidArgumentError(
          absl::StrFormat("pivot tree: fan-out: got %d, expected 2, 9, 17 or 33", options.fan_out));
  }
}

template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPivotTree(DeviceRun<uint32_t>,
                                                                     const PivotTreeOptions&,
                                                                     cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPivotTree(DeviceRun<uint64_t>,
                                                                     const PivotTreeOptions&,
                                                                     cudaStream_t);

}  // namespace cairn::gpu
