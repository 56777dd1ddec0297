#pragma once

#include "gpu/packed/rank_bitmap.h"

namespace cairn::gpu {

// A cell of a rank bitmap: bit `bit` of word `word` of a node.
struct RankCell {
  uint32_t node;
  uint32_t word;
  uint32_t bit;
};

// The cell of the key `offset` after the base; requires offset <= limit. `regions` may be a copy of
// the view's.
template <typename Key>
__device__ inline RankCell CellOf(const RankBitmapView<Key>& view, const uint32_t* regions,
                                  Key offset) {
  using View = RankBitmapView<Key>;
  const uint32_t region = regions[offset >> view.region_shift];
  const Key in_region = offset & ((Key{1} << view.region_shift) - 1);
  const uint32_t cell = static_cast<uint32_t>(in_region >> (region >> View::kNodeBits));
  const uint32_t word = cell / 32, node = word / 3;
  return {(region & ((uint32_t{1} << View::kNodeBits) - 1)) + node, word - node * 3, cell % 32};
}

// The number of leaves that begin in a node up to and including a cell.
__device__ inline uint32_t LeavesUpTo(const uint4& node, const RankCell& cell) {
  const uint32_t up_to = 0xffffffffu >> (31 - cell.bit);
  const uint32_t first = cell.word > 0 ? 0xffffffffu : up_to;
  const uint32_t second = cell.word > 1 ? 0xffffffffu : cell.word == 1 ? up_to : 0;
  const uint32_t third = cell.word == 2 ? up_to : 0;
  return __popc(node.y & first) + __popc(node.z & second) + __popc(node.w & third);
}

// The directory in the form that the packed search uses (packed_search.cuh): one thread per key.
template <typename Key>
struct RankBitmapDirectory {
  RankBitmapView<Key> view;

  // The region table.
  __host__ __device__ size_t shared_bytes() const { return view.region_count * sizeof(uint32_t); }
  __device__ void Load(void* shared) const {
    uint4* to = static_cast<uint4*>(shared);
    const uint4* from = reinterpret_cast<const uint4*>(view.regions);
    for (unsigned i = threadIdx.x; i < shared_bytes() / sizeof(uint4); i += blockDim.x) {
      to[i] = from[i];
    }
  }

  template <bool kStaged, int kQueries>
  __device__ void FindLeaves(const Key (&keys)[kQueries], uint32_t (&leaves)[kQueries],
                             const void* shared) const {
    const uint32_t* regions = kStaged ? static_cast<const uint32_t*>(shared) : view.regions;
    RankCell cells[kQueries];
    uint4 nodes[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const Key offset = keys[i] - view.base;
      cells[i] = CellOf(view, regions, offset <= view.limit ? offset : Key{0});
      nodes[i] = __ldg(reinterpret_cast<const uint4*>(view.nodes) + cells[i].node);
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const uint32_t leaf = nodes[i].x + LeavesUpTo(nodes[i], cells[i]) - 1;
      const bool inside = static_cast<Key>(keys[i] - view.base) <= view.limit;
      leaves[i] = inside ? leaf : keys[i] < view.base ? 0 : view.last_leaf;
    }
  }
};

}  // namespace cairn::gpu
