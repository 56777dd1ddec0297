#include <thrust/iterator/zip_iterator.h>

#include <cub/device/device_select.cuh>
#include <limits>
#include <utility>

#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/btree/b_plus_tree_update.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

// Inserts a batch, in a way between Kaczmarek's single and bulk inserts: new entries are written to
// free places of leaves, or to new leaves next to them, and nothing else moves. Then the few inner
// pages are rebuilt, all levels at once, as in bulk creation.
namespace cairn::gpu {
namespace {

constexpr int kWarps = 4;  // of a block that merges

template <typename Key>
__device__ bool PairLess(Key a_key, RowId a_row, Key b_key, RowId b_row) {
  return a_key < b_key || (a_key == b_key && a_row < b_row);
}

// The number of `size` ascending pairs that are less than the given pair.
template <typename Key>
__device__ uint32_t PairRank(const Key* keys, const RowId* rows, uint32_t size, Key key,
                             RowId row) {
  uint32_t low = 0;
  while (low < size) {
    const uint32_t middle = (low + size) / 2;
    if (PairLess(keys[middle], rows[middle], key, row)) {
      low = middle + 1;
    } else {
      size = middle;
    }
  }
  return low;
}

// Finds the leaf of each entry of a sorted batch, and whether the entry is new: neither in the tree
// nor equal to the entry before it in the batch.
template <typename Key>
__global__ void FindLeaves(const __grid_constant__ LinkedPages<Key> pages, const RowId* inner_rows,
                           const Key* keys, const RowId* row_ids, size_t size, uint32_t* leaf_of,
                           uint8_t* fresh) {
  ForEachIndex(size, [&](size_t i) {
    const Key key = keys[i];
    const RowId row = row_ids[i];
    const uint32_t order = pages.order();
    uint32_t page = pages.root();
    for (int level = pages.levels() - 1; level > 0; --level) {
      const uint32_t rank =
          PairRank(pages.Separators(page), inner_rows + size_t{page} * order, order, key, row);
      page = pages.Child(level, page, rank);
    }
    const Key* const leaf_keys = pages.Keys(page);
    const RowId* const leaf_rows = pages.Rows(page);
    const uint32_t rank = PairRank(leaf_keys, leaf_rows, order, key, row);
    const bool in_tree = rank < order && leaf_keys[rank] == key && leaf_rows[rank] == row;
    const bool repeated = i > 0 && keys[i - 1] == key && row_ids[i - 1] == row;
    leaf_of[i] = page;
    fresh[i] = !in_tree && !repeated;
  });
}

// New entries, ascending, with their leaves.
template <typename Key>
struct Batch {
  const Key* keys;
  const RowId* row_ids;
  const uint32_t* leaf_of;
  uint32_t size;
};

// The arrays that MergeIntoLeaves modifies.
template <typename Key>
struct LeafChanges {
  Key* leaves;
  uint32_t* leaf_sizes;
  uint32_t* next_leaf;
  uint32_t* leaf_count;  // total number of leaves
  uint32_t* added;       // by leaf: number of new leaves after it; initially zero
  uint32_t* first_added;
  uint32_t order;
};

// A leaf and the new leaves after it, which share their entries evenly.
struct LeafGroup {
  uint32_t leaf, first_added;
  uint32_t pages, each, larger;  // the first `larger` pages have each + 1 entries

  __device__ uint32_t Leaf(uint32_t page) const {
    return page == 0 ? leaf : first_added + page - 1;
  }
  __device__ uint32_t Size(uint32_t page) const { return each + (page < larger ? 1 : 0); }
  // The page of entry i, and the first entry of a page.
  __device__ uint32_t PageOf(uint32_t i) const {
    const uint32_t in_larger = larger * (each + 1);
    return i < in_larger ? i / (each + 1) : larger + (i - in_larger) / each;
  }
  __device__ uint32_t First(uint32_t page) const {
    return page * each + (page < larger ? page : larger);
  }
};

// The end of the entries that belong to the leaf of entry `first`.
__device__ uint32_t EndOfGroup(const uint32_t* leaf_of, uint32_t size, uint32_t first,
                               uint32_t lane) {
  const uint32_t leaf = leaf_of[first];
  for (uint32_t end = first + 1;; end += 32) {
    const bool same = end + lane < size && leaf_of[end + lane] == leaf;
    const uint32_t others = ~__ballot_sync(0xffffffffu, same);
    if (others != 0) return end + static_cast<uint32_t>(__ffs(static_cast<int>(others))) - 1;
  }
}

// One warp per entry that is the first of its leaf.
template <typename Key>
__global__ void __launch_bounds__(kWarps * 32)
    MergeIntoLeaves(const __grid_constant__ Batch<Key> batch,
                    const __grid_constant__ LeafChanges<Key> changes) {
  __shared__ Key old_keys[kWarps][BPlusTreeLayout::kGreatestOrder];
  __shared__ RowId old_rows[kWarps][BPlusTreeLayout::kGreatestOrder];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t begin = size_t{blockIdx.x} * kWarps + warp;
  if (begin >= batch.size) return;
  const auto first = static_cast<uint32_t>(begin);
  const uint32_t leaf = batch.leaf_of[first], order = changes.order;
  if (first > 0 && batch.leaf_of[first - 1] == leaf) return;
  const uint32_t count = EndOfGroup(batch.leaf_of, batch.size, first, lane) - first;

  const auto keys_of = [&](uint32_t l) {
    return changes.leaves + l * LeafStride<Key>(static_cast<int>(order));
  };
  const auto rows_of = [&](uint32_t l) { return reinterpret_cast<RowId*>(keys_of(l) + order); };
  const uint32_t old_count = changes.leaf_sizes[leaf], next = changes.next_leaf[leaf];
  for (uint32_t i = lane; i < old_count; i += 32) {
    old_keys[warp][i] = keys_of(leaf)[i];
    old_rows[warp][i] = rows_of(leaf)[i];
  }
  const uint32_t total = old_count + count;
  LeafGroup group{leaf, 0, (total + order - 1) / order, 0, 0};
  group.each = total / group.pages;
  group.larger = total % group.pages;
  if (group.pages > 1) {
    if (lane == 0) group.first_added = atomicAdd(changes.leaf_count, group.pages - 1);
    group.first_added = __shfl_sync(0xffffffffu, group.first_added, 0);
  }
  __syncwarp();

  const auto put = [&](uint32_t i, Key key, RowId row) {
    const uint32_t page = group.PageOf(i), slot = i - group.First(page);
    keys_of(group.Leaf(page))[slot] = key;
    rows_of(group.Leaf(page))[slot] = row;
  };
  const Key* const new_keys = batch.keys + first;
  const RowId* const new_rows = batch.row_ids + first;
  for (uint32_t i = lane; i < old_count; i += 32) {
    const Key key = old_keys[warp][i];
    const RowId row = old_rows[warp][i];
    put(i + PairRank(new_keys, new_rows, count, key, row), key, row);
  }
  for (uint32_t i = lane; i < count; i += 32) {
    const Key key = new_keys[i];
    const RowId row = new_rows[i];
    put(i + PairRank(old_keys[warp], old_rows[warp], old_count, key, row), key, row);
  }
  for (uint32_t page = 0; page < group.pages; ++page) {
    for (uint32_t slot = group.Size(page) + lane; slot < order; slot += 32) {
      keys_of(group.Leaf(page))[slot] = std::numeric_limits<Key>::max();
      rows_of(group.Leaf(page))[slot] = kNoRow;
    }
  }
  for (uint32_t page = lane; page < group.pages; page += 32) {
    changes.leaf_sizes[group.Leaf(page)] = group.Size(page);
    changes.next_leaf[group.Leaf(page)] = page + 1 < group.pages ? group.Leaf(page + 1) : next;
  }
  if (lane == 0) {
    changes.added[leaf] = group.pages - 1;
    changes.first_added[leaf] = group.first_added;
  }
}

// new_leaf_at = leaf_at with the added leaves inserted; ordinals[i] = the new ordinal of
// leaf_at[i].
__global__ void InterleaveLeaves(const uint32_t* leaf_at, const uint32_t* ordinals, uint32_t leaves,
                                 const uint32_t* added, const uint32_t* first_added,
                                 uint32_t* new_leaf_at) {
  ForEachIndex(leaves, [=](size_t i) {
    const uint32_t leaf = leaf_at[i], count = added[leaf];
    uint32_t* const at = new_leaf_at + ordinals[i];
    at[0] = leaf;
    for (uint32_t k = 0; k < count; ++k) at[k + 1] = first_added[leaf] + k;
  });
}

// Inner pages as arrays, the output of CreateInnerPagesAbove.
template <typename Key>
struct InnerArrays {
  Key* keys;
  RowId* row_ids;
  uint32_t* children;
  uint32_t* sizes;
};

// `layout` must be AboveLeaves. Creates all levels together.
template <typename Key>
__global__ void CreateInnerPagesAbove(const __grid_constant__ BPlusTreeLayout layout,
                                      const __grid_constant__ PageMemory<Key> pages,
                                      const uint32_t* leaf_at, const uint32_t* leaf_sizes,
                                      InnerArrays<Key> inner) {
  ForEachIndex(size_t{layout.inner_pages()} << pages.order_bits, [&](size_t i) {
    const auto number = static_cast<uint32_t>(i >> pages.order_bits);
    const uint32_t slot = static_cast<uint32_t>(i) & (pages.order() - 1);
    const int level = layout.level_of(number);
    const uint32_t page = number - layout.first_page(level);
    const uint32_t separators = layout.separators(level, page);
    const auto child = [&](uint32_t s) {
      const uint32_t below = layout.level(level).first(page) + s;
      return level == 1 ? leaf_at[below] : layout.first_page(level - 1) + below;
    };
    uint32_t* const children = inner.children + size_t{number} * (pages.order() + 1);
    if (slot == 0) {
      inner.sizes[number] = separators;
      children[0] = child(0);
    }
    inner.keys[i] = std::numeric_limits<Key>::max();
    inner.row_ids[i] = kNoRow;
    if (slot >= separators) return;
    children[slot + 1] = child(slot + 1);
    const uint32_t leaf = leaf_at[layout.SeparatorEntry(level, page, slot)];
    inner.keys[i] = pages.Keys(leaf)[leaf_sizes[leaf] - 1];
    inner.row_ids[i] = pages.Rows(leaf)[leaf_sizes[leaf] - 1];
  });
}

// Memory that is allocated before anything changes.
template <typename Key>
struct Scratch {
  DeviceBuffer<uint32_t> leaf_of, fresh_leaf_of;
  DeviceBuffer<uint8_t> fresh;
  DeviceBuffer<Key> fresh_keys;
  DeviceBuffer<RowId> fresh_rows;
  DeviceBuffer<int64_t> fresh_count;
  DeviceBuffer<uint32_t> added, first_added, new_leaf_at, leaf_count;

  absl::Status Allocate(size_t batch, const BPlusTreeLinks& links, cudaStream_t stream) {
    absl::Status status;
    const auto allocate = [&]<typename T>(DeviceBuffer<T>* buffer, size_t size) {
      if (!status.ok()) return;
      absl::StatusOr<DeviceBuffer<T>> made = DeviceBuffer<T>::Allocate(size, stream);
      if (made.ok()) {
        *buffer = *std::move(made);
      } else {
        status = made.status();
      }
    };
    allocate(&leaf_of, batch);
    allocate(&fresh_leaf_of, batch);
    allocate(&fresh, batch);
    allocate(&fresh_keys, batch);
    allocate(&fresh_rows, batch);
    allocate(&fresh_count, 1);
    allocate(&added, links.leaf_room);
    allocate(&first_added, links.leaf_room);
    allocate(&new_leaf_at, links.leaf_room);
    allocate(&leaf_count, 1);
    return status;
  }
};

// Selects the new entries of a batch into `scratch`, and returns their number.
template <typename Key>
absl::StatusOr<uint32_t> SelectFresh(const BPlusTreePages<Key>& pages, const DeviceRun<Key>& added,
                                     const Scratch<Key>& scratch, cudaStream_t stream) {
  const size_t size = added.size();
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindLeaves", SimpleShape(size), stream, FindLeaves<Key>,
                               ViewLinked(pages), pages.links->inner_rows.data(), added.keys.data(),
                               added.row_ids.data(), size, scratch.leaf_of.data(),
                               scratch.fresh.data());
  const auto in =
      thrust::make_zip_iterator(added.keys.data(), added.row_ids.data(), scratch.leaf_of.data());
  const auto out = thrust::make_zip_iterator(scratch.fresh_keys.data(), scratch.fresh_rows.data(),
                                             scratch.fresh_leaf_of.data());
  const auto select = [&](void* memory, size_t& bytes) {
    return cub::DeviceSelect::Flagged(memory, bytes, in, scratch.fresh.data(), out,
                                      scratch.fresh_count.data(), static_cast<int64_t>(size),
                                      stream);
  };
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUB_FAILS(select(nullptr, bytes));
  ASSIGN_OR_RETURN(DeviceBuffer<char> memory, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUB_FAILS(select(memory.data(), bytes));
  ASSIGN_OR_RETURN(const int64_t count, ReadBack(scratch.fresh_count.data(), stream));
  return static_cast<uint32_t>(count);
}

// Rebuilds the inner pages over the leaves in leaf_at; there are links.shape.pages[0] leaves.
template <typename Key>
absl::Status CreateInnerAnew(BPlusTreePages<Key>* pages, cudaStream_t stream) {
  BPlusTreeLinks& links = *pages->links;
  BPlusTreeShape& shape = links.shape;
  const BPlusTreeLayout layout =
      BPlusTreeLayout::AboveLeaves(shape.pages[0], pages->layout.order(), pages->layout.fill());
  // The first inner page; without inner pages, the first leaf, which is always leaf 0.
  shape.root = 0;
  shape.levels = layout.levels();
  shape.inner_pages = layout.inner_pages();
  for (int level = 1; level < BPlusTreeLayout::kMaxLevels; ++level) {
    shape.pages[level] = level < layout.levels() ? layout.level(level).pages() : 0;
  }
  const InnerArrays<Key> inner{pages->inner.data(), links.inner_rows.data(), links.children.data(),
                               links.inner_sizes.data()};
  const size_t places = size_t{shape.inner_pages} * static_cast<size_t>(layout.order());
  CAIRN_RETURN_IF_LAUNCH_FAILS("CreateInnerPagesAbove", SimpleShape(places), stream,
                               CreateInnerPagesAbove<Key>, layout, ViewMemory(*pages),
                               links.leaf_at.data(), links.leaf_sizes.data(), inner);
  return absl::OkStatus();
}

}  // namespace

template <typename Key>
absl::Status InsertTogether(BPlusTreePages<Key>* pages, const DeviceRun<Key>& added,
                            cudaStream_t stream) {
  BPlusTreeLinks& links = *pages->links;
  BPlusTreeShape& shape = links.shape;
  const int order = pages->layout.order();
  Scratch<Key> scratch;
  RETURN_IF_ERROR(scratch.Allocate(added.size(), links, stream));
  ASSIGN_OR_RETURN(LeafCount count, LeafCount::Prepare(links, stream));
  ASSIGN_OR_RETURN(const uint32_t fresh, SelectFresh(*pages, added, scratch, stream));
  if (fresh == 0) return absl::OkStatus();

  const uint32_t leaves = shape.pages[0];
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemsetAsync(scratch.added.data(), 0, leaves * sizeof(uint32_t), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(scratch.leaf_count.data(), &leaves, sizeof(leaves),
                                             cudaMemcpyHostToDevice, stream));
  const Batch<Key> batch{scratch.fresh_keys.data(), scratch.fresh_rows.data(),
                         scratch.fresh_leaf_of.data(), fresh};
  const LeafChanges<Key> changes{pages->leaves.data(),        links.leaf_sizes.data(),
                                 links.next_leaf.data(),      scratch.leaf_count.data(),
                                 scratch.added.data(),        scratch.first_added.data(),
                                 static_cast<uint32_t>(order)};
  CAIRN_RETURN_IF_LAUNCH_FAILS("MergeIntoLeaves",
                               LaunchShape{(fresh - 1) / kWarps + 1, kWarps * 32}, stream,
                               MergeIntoLeaves<Key>, batch, changes);
  RETURN_IF_ERROR(count.Sum(links.leaf_at.data(), scratch.added.data(), 1, leaves, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("InterleaveLeaves", SimpleShape(leaves), stream, InterleaveLeaves,
                               links.leaf_at.data(), count.sums(), leaves, scratch.added.data(),
                               scratch.first_added.data(), scratch.new_leaf_at.data());
  ASSIGN_OR_RETURN(const uint32_t leaf_count, ReadBack(scratch.leaf_count.data(), stream));
  std::swap(links.leaf_at, scratch.new_leaf_at);
  links.leaf_at.SetStream(AfterAllUses());
  scratch.new_leaf_at.SetStream(stream);
  shape.pages[0] = leaf_count;
  shape.entries += fresh;
  RETURN_IF_ERROR(CreateInnerAnew(pages, stream));
  RETURN_IF_ERROR(count.SetPositions(links, order, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return absl::OkStatus();
}

template absl::Status InsertTogether(BPlusTreePages<uint32_t>*, const DeviceRun<uint32_t>&,
                                     cudaStream_t);
template absl::Status InsertTogether(BPlusTreePages<uint64_t>*, const DeviceRun<uint64_t>&,
                                     cudaStream_t);

}  // namespace cairn::gpu
