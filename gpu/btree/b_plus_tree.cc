#include "gpu/btree/b_plus_tree.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/btree/b_plus_tree_rows.h"
#include "gpu/btree/b_plus_tree_update.h"
#include "gpu/run/entry_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Keys a page is created with: at least half of what it holds.
int KeysOfFill(const BPlusTreeOptions& options) {
  const auto keys = static_cast<int>(std::lround(options.fill * options.order));
  return std::clamp(keys, options.order / 2, options.order);
}

absl::Status CheckMostEntries(size_t entries, size_t more) {
  if (more <= kMaxEntries && entries + more <= kMaxEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%d and %d entries, more than the %d that an index takes", entries, more, kMaxEntries));
}

// Entries that are inserted one by one rather than together.
constexpr size_t kMostOneByOne = 64;

// Pages over the first `size` entries of a run, when they are done.
template <typename Key>
absl::StatusOr<BPlusTreePages<Key>> CreateAndWait(const DeviceRun<Key>& run, size_t size,
                                                  const BPlusTreeOptions& options,
                                                  cudaStream_t stream) {
  const BPlusTreeLayout layout(size, options.order, KeysOfFill(options));
  ASSIGN_OR_RETURN(BPlusTreePages<Key> pages,
                   CreatePages(run.keys.data(), run.row_ids.data(), layout, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  pages.SetStream(AfterAllUses());
  return pages;
}

}  // namespace

template <typename Key>
BPlusTree<Key>::BPlusTree(BPlusTreeOptions options, int device, BPlusTreePages<Key> pages)
    : DeviceIndex(KindOf<Key>(), pages.entries(), device),
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
absl::Status BPlusTree<Key>::BulkInsert(const Key* keys, const RowId* row_ids, size_t size,
                                        Duplicates duplicates, cudaStream_t stream) {
  const OnDevice on_device(device());
  RETURN_IF_ERROR(CheckMostEntries(this->size(), size));
  // At the peak there are these pages and, twice, all entries.
  RETURN_IF_ERROR(CheckDeviceMemory(2 * (this->size() + size) * (sizeof(Key) + sizeof(RowId)),
                                    "inserting into a B+-tree"));
  ASSIGN_OR_RETURN(DeviceRun<Key> added, SortToRun(keys, row_ids, size, stream));
  ASSIGN_OR_RETURN(DeviceRun<Key> old, ExtractRun(pages_, stream));
  ASSIGN_OR_RETURN(const MergedRun<Key> merged,
                   MergeRuns(std::move(old), std::move(added), duplicates, stream));
  ASSIGN_OR_RETURN(pages_, CreateAndWait(merged.entries, merged.size, options_, stream));
  SetSize(pages_.entries());
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<size_t> BPlusTree<Key>::Insert(const Key* keys, const RowId* row_ids, size_t size,
                                              cudaStream_t stream) {
  const OnDevice on_device(device());
  RETURN_IF_ERROR(CheckMostEntries(this->size(), size));
  if (size == 0) return 0;
  RETURN_IF_ERROR(MakeRoom(&pages_, size, stream));
  if (size <= kMostOneByOne) {
    RETURN_IF_ERROR(InsertOneByOne(&pages_, keys, row_ids, size, stream));
  } else {
    ASSIGN_OR_RETURN(const DeviceRun<Key> added, SortToRun(keys, row_ids, size, stream));
    RETURN_IF_ERROR(InsertTogether(&pages_, added, stream));
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
  ASSIGN_OR_RETURN(BPlusTreePages<Key> pages, CreateAndWait(run, run.size(), options, stream));
  return std::make_unique<BPlusTree<Key>>(options, device, std::move(pages));
}

template class BPlusTree<uint32_t>;
template class BPlusTree<uint64_t>;
template absl::StatusOr<std::unique_ptr<BPlusTree<uint32_t>>> BuildBPlusTree(
    DeviceRun<uint32_t>, const BPlusTreeOptions&, cudaStream_t);
template absl::StatusOr<std::unique_ptr<BPlusTree<uint64_t>>> BuildBPlusTree(
    DeviceRun<uint64_t>, const BPlusTreeOptions&, cudaStream_t);

}  // namespace cairn::gpu
