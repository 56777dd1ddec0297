#include "gpu/btree/b_plus_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/btree/b_plus_tree_rows.h"
#include "gpu/btree/b_plus_tree_update.h"
#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Keys per page at creation: at least half of its capacity.
int KeysOfFill(const BPlusTreeOptions& options) {
  const auto keys = static_cast<int>(std::lround(options.fill * options.order));
  return std::clamp(keys, options.order / 2, options.order);
}

absl::Status CheckMostEntries(size_t entries, size_t more) {
  if (more <= kMaxEntries && entries + more <= kMaxEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("got %d and %d entries, together more than the %d that an index supports",
                      entries, more, kMaxEntries));
}

// Maximum number of entries that are inserted one by one, not together.
constexpr size_t kMaxOneByOne = UpdatableDeviceIndex::kMaxOneByOne;

// InvalidArgument if any of a few row ids is kNoRow. Waits for the stream.
absl::Status CheckRows(const RowId* row_ids, size_t size, cudaStream_t stream) {
  std::array<RowId, kMaxOneByOne> rows;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(rows.data(), row_ids, size * sizeof(RowId), cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  if (std::find(rows.begin(), rows.begin() + size, kNoRow) == rows.begin() + size) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat("got row id %d, which is reserved", kNoRow));
}

// Pages over the first `size` entries of a run. Enqueued on `stream`, which may be the caller's own
// stream on the current device.
template <typename Key>
absl::StatusOr<BPlusTreePages<Key>> Create(const DeviceRun<Key>& run, size_t size,
                                           const BPlusTreeOptions& options, int device,
                                           cudaStream_t stream) {
  const BPlusTreeLayout layout(size, options.order, KeysOfFill(options));
  ASSIGN_OR_RETURN(BPlusTreePages<Key> pages,
                   CreatePages(run.keys.data(), run.row_ids.data(), layout, stream));
  RETURN_IF_ERROR(NoteUse(device, stream));
  pages.SetStream(AfterAllUses());
  return pages;
}

}  // namespace

template <typename Key>
BPlusTree<Key>::BPlusTree(BPlusTreeOptions options, int device, BPlusTreePages<Key> pages)
    : UpdatableDeviceIndex(KindOf<Key>(), pages.entries(), device),
      options_(options),
      pages_(std::move(pages)) {}

template <typename Key>
std::string BPlusTree<Key>::description() const {
  return absl::StrFormat("gpu:btree,order=%d,fill=%g,method=%s", options_.order, options_.fill,
                         BPlusTreeMethodName(options_.method));
}

template <typename Key>
absl::Status BPlusTree<Key>::Search(Operation query, DeviceKeys keys, void* results,
                                    DeviceStream stream) const {
  return SearchPages(pages_, options_.method, query, keys, results, stream);
}

template <typename Key>
absl::Status BPlusTree<Key>::GatherRows(const Position* begin, const uint64_t* offsets,
                                        size_t queries, uint64_t rows, Order order, RowId* row_ids,
                                        DeviceStream stream) const {
  return CopyRowsFromPages(pages_, begin, offsets, queries, rows, order, row_ids, stream);
}

template <typename Key>
absl::Status BPlusTree<Key>::BulkInsertEntries(DeviceKeys keys, const RowId* row_ids,
                                               EqualKeys equal_keys, DeviceStream stream) {
  RETURN_IF_ERROR(CheckMostEntries(this->size(), keys.size()));
  // At the peak, memory holds the existing pages and all entries twice.
  RETURN_IF_ERROR(
      CheckDeviceMemory(2 * (this->size() + keys.size()) * (sizeof(Key) + sizeof(RowId)),
                        "inserting into a B+-tree"));
  ASSIGN_OR_RETURN(DeviceRun<Key> added,
                   SortToRun(static_cast<const Key*>(keys.data()), row_ids, keys.size(), stream));
  ASSIGN_OR_RETURN(DeviceRun<Key> old, ExtractRun(pages_, stream));
  ASSIGN_OR_RETURN(const MergedRun<Key> merged,
                   MergeRuns(std::move(old), std::move(added), equal_keys, stream));
  ASSIGN_OR_RETURN(BPlusTreePages<Key> pages,
                   Create(merged.entries, merged.size, options_, device(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  pages_ = std::move(pages);
  SetSize(pages_.entries());
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<size_t> BPlusTree<Key>::InsertEntries(DeviceKeys keys, const RowId* row_ids,
                                                     DeviceStream stream) {
  const size_t added = keys.size();
  const Key* const added_keys = static_cast<const Key*>(keys.data());
  RETURN_IF_ERROR(CheckMostEntries(this->size(), added));
  if (added == 0) return 0;
  if (added <= kMaxOneByOne) {
    RETURN_IF_ERROR(CheckRows(row_ids, added, stream));
    RETURN_IF_ERROR(MakeRoom(&pages_, added, stream));
    RETURN_IF_ERROR(InsertOneByOne(&pages_, added_keys, row_ids, added, stream));
  } else {
    ASSIGN_OR_RETURN(const DeviceRun<Key> run, SortToRun(added_keys, row_ids, added, stream));
    RETURN_IF_ERROR(MakeRoom(&pages_, added, stream));
    RETURN_IF_ERROR(InsertTogether(&pages_, run, stream));
  }
  const size_t inserted = pages_.entries() - this->size();
  SetSize(pages_.entries());
  return inserted;
}

template <typename Key>
absl::StatusOr<std::unique_ptr<BPlusTree<Key>>> BuildBPlusTree(DeviceRun<Key> run,
                                                               const BPlusTreeOptions& options,
                                                               cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  ASSIGN_OR_RETURN(BPlusTreePages<Key> pages, Create(run, run.size(), options, device, stream));
  return std::make_unique<BPlusTree<Key>>(options, device, std::move(pages));
}

template class BPlusTree<uint32_t>;
template class BPlusTree<uint64_t>;
template absl::StatusOr<std::unique_ptr<BPlusTree<uint32_t>>> BuildBPlusTree(
    DeviceRun<uint32_t>, const BPlusTreeOptions&, cudaStream_t);
template absl::StatusOr<std::unique_ptr<BPlusTree<uint64_t>>> BuildBPlusTree(
    DeviceRun<uint64_t>, const BPlusTreeOptions&, cudaStream_t);

}  // namespace cairn::gpu
