#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/layout/b_plus_tree_layout.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/device_memory.h"

// The pages of a B+-tree in device memory: Kaczmarek, "B+-Tree Optimized for GPGPU" (2012), section
// 2.1, with three deviations. A leaf's row ids are stored after its keys, not in a separate array:
// random reads of 128 bytes cost 1.2 times as much as those of 64, but two reads cost twice as
// much. A separator is the maximum key below its left child, not the minimum below its right one.
// So a search for the first of many equal keys ends in the leaf that has it. Pages created in bulk
// need no child pointers, sizes or links (see BPlusTreeLayout). These are only built for single
// inserts.
namespace cairn::gpu {

// Distance between leaves in memory, in keys.
template <typename Key>
constexpr size_t LeafStride(int order) {
  return static_cast<size_t>(order) + static_cast<size_t>(order) * sizeof(RowId) / sizeof(Key);
}

// The end of the next_leaf chain.
inline constexpr uint32_t kNoLeaf = UINT32_MAX;

// Bytes of the pages of a tree that was created in bulk.
template <typename Key>
constexpr size_t PackedBytes(const BPlusTreeLayout& layout) {
  return sizeof(Key) * (size_t{layout.inner_pages()} * static_cast<size_t>(layout.order()) +
                        layout.leaves() * LeafStride<Key>(layout.order()));
}

// The current size of a tree with links. `root` is a leaf if there are no inner pages.
struct BPlusTreeShape {
  uint32_t root = 0;
  int levels = 1;
  uint32_t entries = 0;
  uint32_t inner_pages = 0;
  uint32_t pages[BPlusTreeLayout::kMaxLevels] = {};  // by level, starting with the leaves (0)
};

// Arrays for pages whose positions can no longer be computed. Inner pages and leaves are numbered
// separately, each in order of creation. The arrays have room for more pages.
struct BPlusTreeLinks {
  BPlusTreeShape shape;
  uint32_t inner_room = 0, leaf_room = 0;  // pages for which memory is allocated
  DeviceBuffer<RowId> inner_rows;          // row ids of separators, which are compared on inserts
  DeviceBuffer<uint32_t> children;         // order + 1 per page
  DeviceBuffer<uint32_t> inner_sizes;      // number of separators per page
  DeviceBuffer<uint32_t> leaf_sizes;
  DeviceBuffer<uint32_t> next_leaf;
  DeviceBuffer<Position> first_positions;  // by leaf
  DeviceBuffer<uint32_t> leaf_at;          // by ordinal
  DeviceBuffer<uint32_t> ordinal_at;       // by position / order

  uint64_t bytes() const;
  void SetStream(cudaStream_t stream);
};

// The pages of a tree: packed if there are no links, otherwise linked.
template <typename Key>
struct BPlusTreePages {
  BPlusTreeLayout layout;    // of the tree when it was created
  DeviceBuffer<Key> inner;   // `order` separators per page
  DeviceBuffer<Key> leaves;  // LeafStride per page
  std::optional<BPlusTreeLinks> links;

  uint32_t entries() const { return links ? links->shape.entries : layout.entries(); }
  uint64_t bytes() const;
  void SetStream(cudaStream_t stream);
};

// Creates all pages of the tree over layout.entries() entries in run order, in parallel (section
// 2.2, bulk creation). Enqueued on `stream`.
template <typename Key>
absl::StatusOr<BPlusTreePages<Key>> CreatePages(const Key* keys, const RowId* row_ids,
                                                const BPlusTreeLayout& layout, cudaStream_t stream);

// The entries of a tree as a run. Enqueued on `stream`.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> ExtractRun(const BPlusTreePages<Key>& pages, cudaStream_t stream);

// Adds links and memory for inserting `inserts` more entries one by one, if they are missing. On
// error the pages are unchanged. Waits.
template <typename Key>
absl::Status MakeRoom(BPlusTreePages<Key>* pages, size_t inserts, cudaStream_t stream);

// Recomputes the leaf arrays of linked pages. Prepare allocates scratch memory for the maximum
// number of pages, so that later steps cannot run out of memory. All work is enqueued on one
// stream.
class LeafCount {
 public:
  static absl::StatusOr<LeafCount> Prepare(const BPlusTreeLinks& links, cudaStream_t stream);

  // Computes leaf_at, from the root down.
  absl::Status ListLeaves(const BPlusTreeLinks& links, int order, cudaStream_t stream);
  // Computes first_positions and ordinal_at from leaf_at and sizes.
  absl::Status SetPositions(const BPlusTreeLinks& links, int order, cudaStream_t stream);
  // Sums over the first pages of a list: sums()[i] = the sum of sizes[list[j]] + more over all j <
  // i.
  absl::Status Sum(const uint32_t* list, const uint32_t* sizes, uint32_t more, uint32_t pages,
                   cudaStream_t stream);
  const uint32_t* sums() const { return sums_.data(); }

 private:
  DeviceBuffer<uint32_t> pages_[2];  // of one level, in key order
  DeviceBuffer<uint32_t> sums_;
  DeviceBuffer<char> scratch_;
};

}  // namespace cairn::gpu
