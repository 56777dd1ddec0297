#include <limits>

#include "gpu/btree/b_plus_tree_update.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

// Single insert: Kaczmarek (2012), section 2.2. The paper needs several kernels per page, because
// it has no barrier. Here, one warp does everything: it descends by comparing whole pages, records
// its path, and goes back up as far as pages split.
namespace cairn::gpu {
namespace {

constexpr uint32_t kWhole = 0xffffffffu;
constexpr int kMaxKeys = BPlusTreeLayout::kGreatestOrder;

// Linked pages that can be modified.
template <typename Key>
struct WritablePages {
  Key* inner;
  RowId* inner_rows;
  uint32_t* children;
  uint32_t* inner_sizes;
  Key* leaves;
  uint32_t* leaf_sizes;
  uint32_t* next_leaf;
  uint32_t order;

  __device__ Key* Keys(uint32_t leaf) const {
    return leaves + leaf * LeafStride<Key>(static_cast<int>(order));
  }
  __device__ RowId* Rows(uint32_t leaf) const {
    return reinterpret_cast<RowId*>(Keys(leaf) + order);
  }
};

// Shared memory of the warp. The overflow is a page with one additional item.
template <typename Key>
struct InsertState {
  BPlusTreeShape shape;
  uint32_t page[BPlusTreeLayout::kMaxLevels];  // the path, by level
  uint32_t slot[BPlusTreeLayout::kMaxLevels];  // slot of the child on the path, by level
  Key keys[kMaxKeys + 1];
  RowId rows[kMaxKeys + 1];
  uint32_t children[kMaxKeys + 2];
};

// An entry, or a separator with the page to its right.
template <typename Key>
struct Item {
  Key key;
  RowId row_id;
  uint32_t right;
};

template <typename Key>
class Inserter {
 public:
  __device__ Inserter(const WritablePages<Key>& pages, InsertState<Key>* state)
      : pages_(pages), state_(state), lane_(threadIdx.x % 32) {}

  __device__ void Insert(Key key, RowId row_id) {
    Item<Key> item{key, row_id, 0};
    const uint32_t leaf = Descend(item);
    if (!InsertIntoLeaf(leaf, &item)) return;
    for (int level = 1; level < state_->shape.levels; ++level) {
      if (!InsertIntoInner(level, &item)) return;
    }
    GrowRoot(item);
  }

 private:
  // The number of `size` pairs that are less than the item.
  __device__ uint32_t Rank(const Key* keys, const RowId* rows, uint32_t size,
                           const Item<Key>& item) const {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < pages_.order; i += 32) {
      const uint32_t at = i + lane_;
      const bool less =
          at < size && (keys[at] < item.key || (keys[at] == item.key && rows[at] < item.row_id));
      rank += static_cast<uint32_t>(__popc(__ballot_sync(kWhole, less)));
    }
    return rank;
  }

  // The leaf of the item; records the path.
  __device__ uint32_t Descend(const Item<Key>& item) {
    uint32_t page = state_->shape.root;
    for (int level = state_->shape.levels - 1; level > 0; --level) {
      const size_t first = size_t{page} * pages_.order;
      const uint32_t slot =
          Rank(pages_.inner + first, pages_.inner_rows + first, pages_.inner_sizes[page], item);
      if (lane_ == 0) {
        state_->page[level] = page;
        state_->slot[level] = slot;
      }
      page = pages_.children[size_t{page} * (pages_.order + 1) + slot];
    }
    __syncwarp();
    return page;
  }

  // Copies a page's pairs to the overflow, with the item inserted.
  __device__ void LoadWithItem(const Key* keys, const RowId* rows, uint32_t size, uint32_t at,
                               const Item<Key>& item) {
    for (uint32_t i = lane_; i < size; i += 32) {
      const uint32_t to = i + (i >= at ? 1 : 0);
      state_->keys[to] = keys[i];
      state_->rows[to] = rows[i];
    }
    if (lane_ == 0) {
      state_->keys[at] = item.key;
      state_->rows[at] = item.row_id;
    }
    __syncwarp();
  }

  // Writes a page of `size` pairs from the overflow.
  __device__ void StorePairs(uint32_t from, uint32_t size, Key* keys, RowId* rows) const {
    for (uint32_t i = lane_; i < pages_.order; i += 32) {
      keys[i] = i < size ? state_->keys[from + i] : std::numeric_limits<Key>::max();
      rows[i] = i < size ? state_->rows[from + i] : kNoRow;
    }
  }
  __device__ void StoreLeaf(uint32_t leaf, uint32_t from, uint32_t size) const {
    StorePairs(from, size, pages_.Keys(leaf), pages_.Rows(leaf));
    if (lane_ == 0) pages_.leaf_sizes[leaf] = size;
  }
  // The same for the separators from `from` on and the children around them.
  __device__ void StoreInner(uint32_t page, uint32_t from, uint32_t separators) const {
    const size_t first = size_t{page} * pages_.order;
    StorePairs(from, separators, pages_.inner + first, pages_.inner_rows + first);
    for (uint32_t i = lane_; i <= separators; i += 32) {
      pages_.children[size_t{page} * (pages_.order + 1) + i] = state_->children[from + i];
    }
    if (lane_ == 0) pages_.inner_sizes[page] = separators;
  }

  // The number of a new page, either a leaf or an inner page.
  __device__ uint32_t NewPage(int level) {
    BPlusTreeShape& shape = state_->shape;
    const uint32_t page = level == 0 ? shape.pages[0] : shape.inner_pages;
    __syncwarp();
    if (lane_ == 0) {
      ++shape.pages[level];
      if (level > 0) ++shape.inner_pages;
    }
    __syncwarp();
    return page;
  }

  // Returns whether the leaf was split; the item is then the separator for its parent.
  __device__ bool InsertIntoLeaf(uint32_t leaf, Item<Key>* item) {
    const Key* const keys = pages_.Keys(leaf);
    const RowId* const rows = pages_.Rows(leaf);
    const uint32_t size = pages_.leaf_sizes[leaf];
    const uint32_t at = Rank(keys, rows, size, *item);
    if (at < size && keys[at] == item->key && rows[at] == item->row_id) return false;
    LoadWithItem(keys, rows, size, at, *item);
    if (lane_ == 0) ++state_->shape.entries;
    if (size < pages_.order) {
      StoreLeaf(leaf, 0, size + 1);
      __syncwarp();
      return false;
    }
    const uint32_t left = (size + 2) / 2, right = NewPage(0);
    StoreLeaf(leaf, 0, left);
    StoreLeaf(right, left, size + 1 - left);
    if (lane_ == 0) {
      pages_.next_leaf[right] = pages_.next_leaf[leaf];
      pages_.next_leaf[leaf] = right;
    }
    *item = {state_->keys[left - 1], state_->rows[left - 1], right};
    __syncwarp();
    return true;
  }

  // The same for the page of a level on the path, which gets a separator and a child.
  __device__ bool InsertIntoInner(int level, Item<Key>* item) {
    const uint32_t page = state_->page[level], at = state_->slot[level];
    const size_t first = size_t{page} * pages_.order;
    const uint32_t size = pages_.inner_sizes[page];
    const uint32_t* const children = pages_.children + size_t{page} * (pages_.order + 1);
    for (uint32_t i = lane_; i <= size; i += 32)
      state_->children[i + (i > at ? 1 : 0)] = children[i];
    if (lane_ == 0) state_->children[at + 1] = item->right;
    LoadWithItem(pages_.inner + first, pages_.inner_rows + first, size, at, *item);
    if (size < pages_.order) {
      StoreInner(page, 0, size + 1);
      __syncwarp();
      return false;
    }
    // The middle separator moves up.
    const uint32_t left = size / 2, right = NewPage(level);
    StoreInner(page, 0, left);
    StoreInner(right, left + 1, size - left);
    *item = {state_->keys[left], state_->rows[left], right};
    __syncwarp();
    return true;
  }

  // Creates a root above the two halves of the old root.
  __device__ void GrowRoot(const Item<Key>& item) {
    BPlusTreeShape& shape = state_->shape;
    const uint32_t root = NewPage(shape.levels);
    if (lane_ == 0) {
      state_->keys[0] = item.key;
      state_->rows[0] = item.row_id;
      state_->children[0] = shape.root;
      state_->children[1] = item.right;
    }
    __syncwarp();
    StoreInner(root, 0, 1);
    if (lane_ == 0) {
      shape.root = root;
      ++shape.levels;
    }
    __syncwarp();
  }

  const WritablePages<Key>& pages_;
  InsertState<Key>* const state_;
  const uint32_t lane_;
};

template <typename Key>
__global__ void __launch_bounds__(32)
    InsertEach(const __grid_constant__ WritablePages<Key> pages, BPlusTreeShape* shape,
               const Key* keys, const RowId* row_ids, size_t size) {
  __shared__ InsertState<Key> state;
  if (threadIdx.x == 0) state.shape = *shape;
  __syncwarp();
  Inserter<Key> inserter(pages, &state);
  for (size_t i = 0; i < size; ++i) inserter.Insert(keys[i], row_ids[i]);
  __syncwarp();
  if (threadIdx.x == 0) *shape = state.shape;
}

}  // namespace

template <typename Key>
absl::Status InsertOneByOne(BPlusTreePages<Key>* pages, const Key* keys, const RowId* row_ids,
                            size_t size, cudaStream_t stream) {
  BPlusTreeLinks& links = *pages->links;
  ASSIGN_OR_RETURN(LeafCount count, LeafCount::Prepare(links, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<BPlusTreeShape> shape,
                   DeviceBuffer<BPlusTreeShape>::Allocate(1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(shape.data(), &links.shape, sizeof(BPlusTreeShape),
                                             cudaMemcpyHostToDevice, stream));
  const WritablePages<Key> writable{
      pages->inner.data(),    links.inner_rows.data(),
      links.children.data(),  links.inner_sizes.data(),
      pages->leaves.data(),   links.leaf_sizes.data(),
      links.next_leaf.data(), static_cast<uint32_t>(pages->layout.order())};
  CAIRN_RETURN_IF_LAUNCH_FAILS("InsertEach", LaunchShape{1, 32}, stream, InsertEach<Key>, writable,
                               shape.data(), keys, row_ids, size);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(&links.shape, shape.data(), sizeof(BPlusTreeShape),
                                             cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  const int order = pages->layout.order();
  RETURN_IF_ERROR(count.ListLeaves(links, order, stream));
  RETURN_IF_ERROR(count.SetPositions(links, order, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return absl::OkStatus();
}

template absl::Status InsertOneByOne(BPlusTreePages<uint32_t>*, const uint32_t*, const RowId*,
                                     size_t, cudaStream_t);
template absl::Status InsertOneByOne(BPlusTreePages<uint64_t>*, const uint64_t*, const RowId*,
                                     size_t, cudaStream_t);

}  // namespace cairn::gpu
