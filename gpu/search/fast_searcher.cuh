#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/run/entry_array.h"
#include "gpu/search/node_search.cuh"
#include "gpu/search/search_kernel.cuh"
#include "index/layout/tree_layout.h"

namespace cairn::gpu {

// Searches a tree of 64-byte lines over the key column, whose lines are the leaves: Kim et al.,
// FAST (SIGMOD 2010), section 5.2, with kLaneCount lanes per query. With one lane per key, 16 for
// 32-bit keys, this is the paper's d_K = 4, two queries per warp.
//
// Deviations from the paper: A node is one line, in key order, with 15 separators and one padding
// slot for 16 children. The lanes count the lesser separators by shuffles; the paper finds the
// child by a table in shared memory. With fewer lanes, each takes more keys.
template <typename Key, int kLaneCount, PageBlocking kPage>
struct FastSearcher {
  using DataType = Key;
  using Slot = uint32_t;  // a position
  using Layout = TreeLayout<Key>;
  static constexpr int kLineKeys = static_cast<int>(Layout::kLineKeys);
  using Line = NodeSearch<Key, kLineKeys, kLaneCount>;
  static constexpr int kLanes = kLaneCount;

  KeysView<Key> lines;
  EntryView<Key, EntryLayout::kSoA> entries;
  Layout layout;  // with blocks of kPage
  int pinned_levels = 0;
  uint32_t pinned_lines = 0;

  FastSearcher(const Key* line_keys, EntryView<Key, EntryLayout::kSoA> view,
               const Layout& tree_layout)
      : lines{line_keys}, entries(view), layout(tree_layout) {}

  // Pins as many whole levels as fit `bytes` of shared memory, if they are stored in level order.
  void PinUpTo(size_t bytes, Pinning) {
    pinned_levels = 0;
    pinned_lines = 0;
    while (kPage == PageBlocking::kNone && pinned_levels < layout.levels()) {
      const size_t more = pinned_lines + layout.nodes(pinned_levels);
      if (more * sizeof(Key) * kLineKeys > bytes) return;
      pinned_lines = static_cast<uint32_t>(more);
      ++pinned_levels;
    }
  }
  __host__ __device__ size_t pinned_bytes() const {
    return size_t{pinned_lines} * kLineKeys * sizeof(Key);
  }
  __device__ void Pin(void* shared) const {
    for (uint32_t i = threadIdx.x; i < pinned_lines * kLineKeys; i += blockDim.x) {
      static_cast<Key*>(shared)[i] = lines.key(i);
    }
  }

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void* pinned) const {
    uint32_t nodes[kQueries] = {};  // within a level
    int level = 0;
    if (pinned != nullptr) {
      for (; level < pinned_levels; ++level) {
        Descend<kQueries>(queries, nodes, level, KeysView<Key>{static_cast<const Key*>(pinned)});
      }
    }
    for (; level < layout.levels(); ++level) Descend<kQueries>(queries, nodes, level, lines);
    SearchLeaves<kQueries>(queries, nodes, slots);
  }

  __device__ Position position(Slot slot) const { return slot; }
  __device__ bool Equals(Slot slot, Key key) const {
    return slot < layout.entries() && entries.key(slot) == key;
  }
  __device__ RowId row_id(Slot slot) const { return entries.row_id(slot); }

 private:
  using LinePart = typename Line::template Part<KeysView<Key>>;

  // Moves from nodes of a level to their children.
  template <int kQueries>
  __device__ void Descend(const Key (&queries)[kQueries], uint32_t (&nodes)[kQueries], int level,
                          const KeysView<Key>& view) const {
    LinePart parts[kQueries];
    uint32_t less[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      parts[i].Load(view, layout.template Line<kPage>(level, nodes[i]) * kLineKeys);
    }
    Line::template CountLess<kQueries>(queries, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) nodes[i] = nodes[i] * kLineKeys + less[i];
  }

  // Computes the positions, given the lines of the key column that contain them.
  template <int kQueries>
  __device__ void SearchLeaves(const Key (&queries)[kQueries], const uint32_t (&leaves)[kQueries],
                               Slot (&slots)[kQueries]) const {
    LinePart parts[kQueries];
    uint32_t less[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      parts[i].Load(KeysView<Key>{entries.keys}, size_t{leaves[i]} * kLineKeys, layout.entries());
    }
    Line::template CountLess<kQueries>(queries, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) slots[i] = leaves[i] * kLineKeys + less[i];
  }
};

}  // namespace cairn::gpu
