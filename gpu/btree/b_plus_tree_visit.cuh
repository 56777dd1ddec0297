#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gpu/btree/b_plus_tree.h"
#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

// Traversal of a B+-tree: Kaczmarek (2012), section 2.4. A visitor is a device function object,
// visit(Position, Key, RowId), which is copied to every thread.
namespace cairn::gpu {

// One thread per 16-byte vector of keys, because leaves are stored in one array, in any order.
template <typename Key, typename Pages, typename Visit>
__global__ void VisitLeaves(const __grid_constant__ Pages pages, Visit visit) {
  constexpr uint32_t kVector = 16 / sizeof(Key);
  using RowVector = std::conditional_t<kVector == 4, uint4, uint2>;
  const uint32_t vectors = pages.order() / kVector;
  ForEachIndex(size_t{pages.leaf_count()} * vectors, [&](size_t i) {
    const auto leaf = static_cast<uint32_t>(i / vectors);
    const uint32_t first = static_cast<uint32_t>(i % vectors) * kVector;
    const uint32_t size = pages.LeafSize(leaf);
    if (first >= size) return;
    union {
      uint4 vector;
      Key items[kVector];
    } keys;
    union {
      RowVector vector;
      RowId items[kVector];
    } rows;
    keys.vector = __ldcs(reinterpret_cast<const uint4*>(pages.Keys(leaf) + first));
    rows.vector = __ldcs(reinterpret_cast<const RowVector*>(pages.Rows(leaf) + first));
    const Position position = pages.FirstPosition(leaf) + first;
#pragma unroll
    for (uint32_t k = 0; k < kVector; ++k) {
      if (first + k < size) visit(position + k, keys.items[k], rows.items[k]);
    }
  });
}

// One block, one leaf at a time.
template <typename Pages, typename Visit>
__global__ void VisitLeavesInOrder(const __grid_constant__ Pages pages, Visit visit) {
  for (uint32_t leaf = pages.LeafAt(0); leaf != kNoLeaf; leaf = pages.NextLeaf(leaf)) {
    const Position first = pages.FirstPosition(leaf);
    for (uint32_t slot = threadIdx.x; slot < pages.LeafSize(leaf); slot += blockDim.x) {
      visit(first + slot, pages.Keys(leaf)[slot], pages.Rows(leaf)[slot]);
    }
    __syncthreads();
  }
}

// Visits every entry once, all in parallel, on the tree's device. Positions are exact, so an array
// that is written by position is in key order. Enqueued on `stream`.
template <typename Key, typename Visit>
absl::Status ForEachEntry(const BPlusTree<Key>& tree, Visit visit, cudaStream_t stream) {
  return VisitPages(tree.pages(), [&](const auto& view) -> absl::Status {
    const size_t vectors = tree.pages().leaves.bytes() / 32;
    CAIRN_RETURN_IF_LAUNCH_FAILS("VisitLeaves", SimpleShape(vectors), stream,
                                 VisitLeaves<Key, std::decay_t<decltype(view)>, Visit>, view,
                                 visit);
    return absl::OkStatus();
  });
}

// Visits every entry once: the entries of a leaf in parallel, but all entries of a leaf before
// those of the next leaf in key order. It follows the links between leaves and does not use the
// device's full parallelism. The visits of later leaves see the visitor's earlier writes. Enqueued
// on `stream`.
template <typename Key, typename Visit>
absl::Status ForEachEntryInOrder(const BPlusTree<Key>& tree, Visit visit, cudaStream_t stream) {
  return VisitPages(tree.pages(), [&](const auto& view) -> absl::Status {
    CAIRN_RETURN_IF_LAUNCH_FAILS("VisitLeavesInOrder", LaunchShape{1, tree.options().order}, stream,
                                 VisitLeavesInOrder<std::decay_t<decltype(view)>, Visit>, view,
                                 visit);
    return absl::OkStatus();
  });
}

}  // namespace cairn::gpu
