#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "gpu/btree/b_plus_tree.h"
#include "gpu/btree/b_plus_tree_pages.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

// Traversal of a B+-tree: Kaczmarek (2012), section 2.4. A visitor is a function object on the
// device, visit(Position, Key, RowId), which is copied to every thread.
namespace cairn::gpu {

// A thread for each vector of 16 bytes of keys, since leaves lie in one array, in order or not.
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

// One block, a leaf at a time.
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

// Visits every entry once, all in parallel, on the tree's device; positions are exact, so that what
// is written to an array by position is in key order. Enqueued on `stream`.
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

// Visits every entry once, those of a leaf in parallel, and all of a leaf before the next in key
// order begins: by following links from leaf to leaf, without the device's parallelism. What a
// visitor writes is seen by the visits of later leaves. Enqueued on `stream`.
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
