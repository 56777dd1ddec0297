#include "gpu/search/eytzinger_tree.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/run/entry_index.h"
#include "gpu/run/range_rows.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/search/double_reordering.cuh"
#include "gpu/search/eytzinger_build.cuh"
#include "gpu/search/eytzinger_searcher.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// The row id at a position.
template <int kFanOut>
struct EytzingerRows {
  RowColumn slots;
  EytzingerLayout<kFanOut> layout;

  __device__ RowId operator()(Position position) const {
    return slots.rows[size_t{layout.SlotOfRank(position)} * slots.stride];
  }
  __device__ const RowId* column() const { return nullptr; }
};

template <typename Key, int kFanOut, EntryLayout kLayout>
class EytzingerTree final : public DeviceIndex {
 public:
  EytzingerTree(EntryArray<Key> entries, size_t size, int device)
      : DeviceIndex(KindOf<Key>(), size, device), entries_(std::move(entries)), layout_(size) {}

  std::string description() const override {
    return absl::StrFormat("gpu:eytzinger,k=%d%s", kFanOut, LayoutOption(kLayout));
  }
  uint64_t memory_bytes() const override { return entries_.bytes(); }
  bool writes_results_once() const override { return true; }

 private:
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override {
    constexpr int kLanes = LanesOfNode<Key>(kFanOut);
    const EytzingerSearcher<Key, kFanOut, kLayout, kLanes> searcher(
        EytzingerView<kFanOut, kLayout>(entries_), layout_);
    if constexpr (kLanes == 1) {
      return SearchBatchReordered<SearchPolicy<256>>(searcher, entries_.bytes(), size(), query,
                                                     keys, results, stream);
    } else {
      return SearchBatch<SearchPolicy<256, 2>>(searcher, size(), query, keys, results, stream);
    }
  }
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override {
    RowColumn slots = entries_.row_column();
    slots.rows += kEytzingerSlotsBefore<kFanOut> * slots.stride;
    return CopyRowsOfRanges(EytzingerRows<kFanOut>{slots, layout_}, begin, offsets, queries, rows,
                            order, row_ids, stream);
  }

  EntryArray<Key> entries_;
  EytzingerLayout<kFanOut> layout_;
};

template <typename Key, int kFanOut>
absl::StatusOr<std::unique_ptr<DeviceIndex>> Build(DeviceRun<Key> run, EntryLayout layout,
                                                   cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  const size_t size = run.size();
  ASSIGN_OR_RETURN(EntryArray<Key> entries, ArrangeEytzinger<Key, kFanOut>(run, layout, stream));
  RETURN_IF_ERROR(NoteUse(device, stream));
  entries.SetStream(AfterAllUses());
  if (layout == EntryLayout::kAoS) {
    return std::make_unique<EytzingerTree<Key, kFanOut, EntryLayout::kAoS>>(std::move(entries),
                                                                            size, device);
  }
  return std::make_unique<EytzingerTree<Key, kFanOut, EntryLayout::kSoA>>(std::move(entries), size,
                                                                          device);
}

}  // namespace

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildEytzingerTree(DeviceRun<Key> run,
                                                                const EytzingerTreeOptions& options,
                                                                cudaStream_t stream) {
  const EntryLayout layout =
      options.layout.value_or(sizeof(Key) == 4 ? EntryLayout::kAoS : EntryLayout::kSoA);
  switch (options.fan_out) {
    case 2:
      return Build<Key, 2>(std::move(run), layout, stream);
    case 9:
      return Build<Key, 9>(std::move(run), layout, stream);
    case 17:
      return Build<Key, 17>(std::move(run), layout, stream);
    case 33:
      return Build<Key, 33>(std::move(run), layout, stream);
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "Eytzinger order: fan-out: got %d, expected 2, 9, 17 or 33", options.fan_out));
  }
}

template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildEytzingerTree(
    DeviceRun<uint32_t>, const EytzingerTreeOptions&, cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildEytzingerTree(
    DeviceRun<uint64_t>, const EytzingerTreeOptions&, cudaStream_t);

}  // namespace cairn::gpu
