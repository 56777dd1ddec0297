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
// 2.1, with these deviations. A leaf's row ids stand behind its keys, not in an array of their own:
// random reads of 128 bytes cost 1.2 times those of 64, two reads twice as much. A separator is the
// greatest key below its left child, not the least of its right one, so that a search for the first
// of many equal keys ends in the leaf that has it. And pages created in bulk need neither child
// pointers nor sizes nor links: see BPlusTreeLayout. They are made for single inserts only.
namespace cairn::gpu {

// Keys' worth of memory from leaf to leaf.
template <typename Key>
constexpr size_t LeafStride(int order) {
  return static_cast<size_t>(order) + static_cast<size_t>(order) * sizeof(RowId) / sizeof(Key);
}

// Where next_leaf ends.
inline constexpr uint32_t kNoLeaf = UINT32_MAX;

// Bytes of the pages of a tree that was created in bulk.
template <typename Key>
constexpr size_t PackedBytes(const BPlusTreeLayout& layout) {
  return sizeof(Key) * (size_t{layout.inner_pages()} * static_cast<size_t>(layout.order()) +
                        layout.leaves() * LeafStride<Key>(layout.order()));
}

// How far a tree with links has grown. `root` is a leaf where there is no other.
struct BPlusTreeShape {
  uint32_t root = 0;
  int levels = 1;
  uint32_t entries = 0;
  uint32_t inner_pages = 0;
  uint32_t pages[BPlusTreeLayout::kMaxLevels] = {};  // by level from the leaves, 0
};

// What pages need that are no longer where arithmetic finds them. Inner pages are numbered all
// together, leaves apart, both as they came to be; arrays have room for `spare` more.
struct BPlusTreeLinks {
  BPlusTreeShape shape;
  uint32_t inner_room = 0, leaf_room = 0;  // pages that there is memory for
  DeviceBuffer<RowId> inner_rows;          // of separators, whose entries are compared on inserts
  DeviceBuffer<uint32_t> children;         // order + 1 a page
  DeviceBuffer<uint32_t> inner_sizes;      // separators a page
  DeviceBuffer<uint32_t> leaf_sizes;
  DeviceBuffer<uint32_t> next_leaf;
  DeviceBuffer<Position> first_positions;  // by leaf
  DeviceBuffer<uint32_t> leaf_at;          // by ordinal
  DeviceBuffer<uint32_t> ordinal_at;       // by position / order

  uint64_t bytes() const;
  void SetStream(cudaStream_t stream);
};

// Pages of a tree: packed without links, else linked.
template <typename Key>
struct BPlusTreePages {
  BPlusTreeLayout layout;    // of the tree as it was created
  DeviceBuffer<Key> inner;   // `order` separators a page
  DeviceBuffer<Key> leaves;  // LeafStride a page
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

// Gives pages links and memory for `inserts` more entries, put in one by one, if they have not got
// them. The pages are unchanged if that fails. Waits.
template <typename Key>
absl::Status MakeRoom(BPlusTreePages<Key>* pages, size_t inserts, cudaStream_t stream);

// Counts the leaves of linked pages anew. Scratch is allocated before, for all that there is room
// for, so that the rest does not fail for want of memory; all is enqueued on one stream.
class LeafCount {
 public:
  static absl::StatusOr<LeafCount> Prepare(const BPlusTreeLinks& links, cudaStream_t stream);

  // leaf_at, from the root down.
  absl::Status ListLeaves(const BPlusTreeLinks& links, int order, cudaStream_t stream);
  // first_positions and ordinal_at, from leaf_at and sizes.
  absl::Status SetPositions(const BPlusTreeLinks& links, int order, cudaStream_t stream);
  // Sums over the first pages of a list: sums()[i] = sizes[p] + more for all p = list[j], j < i.
  absl::Status Sum(const uint32_t* list, const uint32_t* sizes, uint32_t more, uint32_t pages,
                   cudaStream_t stream);
  const uint32_t* sums() const { return sums_.data(); }

 private:
  DeviceBuffer<uint32_t> pages_[2];  // of a level, in key order
  DeviceBuffer<uint32_t> sums_;
  DeviceBuffer<char> scratch_;
};

}  // namespace cairn::gpu
