#include "gpu/search/fast_tree.h"

#include <string>
#include <utility>

#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/search/fast_build.cuh"
#include "gpu/search/fast_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/layout/tree_layout.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kLanes = 4;

template <typename Key>
class FastTree final : public EntryIndex<Key, EntryLayout::kSoA> {
 public:
  FastTree(EntryArray<Key> entries, DeviceBuffer<Key> lines, const TreeLayout<Key>& layout,
           int device)
      : EntryIndex<Key, EntryLayout::kSoA>(std::move(entries), layout.entries(), device),
        lines_(std::move(lines)),
        layout_(layout) {}

  std::string description() const override { return "gpu:fast"; }
  uint64_t memory_bytes() const override { return this->entry_bytes() + lines_.bytes(); }

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override {
    return SearchBatch<SearchPolicy<256, 4>>(
        FastSearcher<Key, kLanes, PageBlocking::kNone>(lines_.data(), this->view(), layout_),
        this->size(), query, keys, results, stream);
  }

  DeviceBuffer<Key> lines_;
  TreeLayout<Key> layout_;
};

}  // namespace

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFastTree(DeviceRun<Key> run,
                                                           cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  const TreeLayout<Key> layout(run.size(), PageBlocking::kNone);
  ASSIGN_OR_RETURN(DeviceBuffer<Key> lines, BuildFastNodes(run.keys.data(), layout, stream));
  ASSIGN_OR_RETURN(EntryArray<Key> entries,
                   ArrangeEntries(std::move(run), EntryLayout::kSoA, stream));
  RETURN_IF_ERROR(NoteUse(device, stream));
  entries.SetStream(AfterAllUses());
  lines.SetStream(AfterAllUses());
  return std::make_unique<FastTree<Key>>(std::move(entries), std::move(lines), layout, device);
}

template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFastTree(DeviceRun<uint32_t>,
                                                                    cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildFastTree(DeviceRun<uint64_t>,
                                                                    cudaStream_t);

}  // namespace cairn::gpu
