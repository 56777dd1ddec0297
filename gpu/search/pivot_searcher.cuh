#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "cairn/types.h"
#include "gpu/layout/pivot_layout.h"
#include "gpu/run/entry_array.h"
#include "gpu/search/node_search.cuh"
#include "gpu/search/search_kernel.cuh"

namespace cairn::gpu {

// Searches a pivot tree: AO+PB+BS (kFanOut = 2) and AO+PB+KS of Henneberg and Schuhknecht (2025),
// sections 3.3 and 3.4. The first nodes are pinned (section 4.2).
template <typename Key, int kFanOut, EntryLayout kLayout, int kLaneCount>
struct PivotSearcher {
  using DataType = Key;
  using Slot = uint32_t;  // a position
  using Layout = PivotLayout<kFanOut>;
  using Node = NodeSearch<Key, kFanOut - 1, kLaneCount>;
  static constexpr int kLanes = kLaneCount;
  static constexpr uint32_t kNodeKeys = kFanOut - 1;

  KeysView<Key> pivots;
  EntryView<Key, kLayout> entries;
  Layout layout;
  int pinned_levels = 0;      // levels whose nodes are all pinned
  uint32_t pinned_nodes = 0;  // pinned nodes in total, possibly including part of the next level

  PivotSearcher(const Key* pivot_keys, EntryView<Key, kLayout> view, const Layout& pivot_layout)
      : pivots{pivot_keys}, entries(view), layout(pivot_layout) {}

  // Pins as many nodes as fit `bytes` of shared memory.
  void PinUpTo(size_t bytes, Pinning pinning) {
    const size_t all = layout.first_node(layout.levels());
    const size_t fits = std::min(bytes / (sizeof(Key) * kNodeKeys), all);
    for (pinned_levels = 0; pinned_levels < layout.levels(); ++pinned_levels) {
      if (layout.first_node(pinned_levels + 1) > fits) break;
    }
    pinned_nodes =
        static_cast<uint32_t>(pinning == Pinning::kFull ? fits : layout.first_node(pinned_levels));
  }

  __host__ __device__ size_t pinned_bytes() const {
    return size_t{pinned_nodes} * kNodeKeys * sizeof(Key);
  }

  __device__ void Pin(void* shared) const {
    for (uint32_t i = threadIdx.x; i < pinned_nodes * kNodeKeys; i += blockDim.x) {
      static_cast<Key*>(shared)[i] = pivots.key(i);
    }
  }

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void* pinned) const {
    uint64_t first[kQueries];
    FindBlocks<kQueries>(queries, first, pinned);
    LeafPart parts[kQueries];
    uint32_t less[kQueries];
    CompareBlocks<kQueries>(queries, first, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) slots[i] = static_cast<uint32_t>(first[i] + less[i]);
  }

  // With pairs, the row id was read together with its key.
  template <int kQueries>
  __device__ void FirstRows(const Key (&queries)[kQueries], RowId (&row_ids)[kQueries],
                            const void* pinned) const {
    uint64_t first[kQueries];
    FindBlocks<kQueries>(queries, first, pinned);
    LeafPart parts[kQueries];
    uint32_t less[kQueries];
    CompareBlocks<kQueries>(queries, first, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const RowId row_id = parts[i].RowAt(less[i], queries[i]);  // called by all lanes of the warp
      row_ids[i] = first[i] + less[i] < layout.entries() ? row_id : kNoRow;
    }
    if constexpr (kLayout == EntryLayout::kSoA) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        if (row_ids[i] != kNoRow) row_ids[i] = entries.row_id(first[i] + less[i]);
      }
    }
  }

  __device__ Position position(Slot slot) const {
    return slot;
  }
  __device__ bool Equals(Slot slot, Key key) const {
    return slot < layout.entries() && entries.key(slot) == key;
  }
  __device__ RowId row_id(Slot slot) const {
    return entries.row_id(slot);
  }

 private:
  using PivotPart = typename Node::template Part<KeysView<Key>>;
  using LeafPart = typename Node::template Part<EntryView<Key, kLayout>>;

  // Finds the first entries of the blocks that contain the lower bounds.
  template <int kQueries>
  __device__ void FindBlocks(const Key (&queries)[kQueries], uint64_t (&first)[kQueries],
                             const void* pinned) const {
    uint32_t nodes[kQueries] = {};  // within a level
    int level = 0;
    if (pinned != nullptr) level = SearchPinned<kQueries>(queries, nodes, pinned);
    for (; level < layout.levels(); ++level) {
      const size_t before = layout.first_node(level);
      Descend<kQueries>(queries, nodes, [&](size_t node, PivotPart& part) {
        part.Load(pivots, (before + node) * kNodeKeys);
      });
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) first[i] = nodes[i] * layout.partition_entries();
    if (layout.partition_blocks() > 1) SearchPartitions<kQueries>(queries, first);
  }

  // Descends one level; load(node, part) reads a node of it.
  template <int kQueries, typename Load>
  __device__ static void Descend(const Key (&queries)[kQueries], uint32_t (&nodes)[kQueries],
                                 Load load) {
    PivotPart parts[kQueries];
    uint32_t less[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) load(nodes[i], parts[i]);
    Node::template CountLess<kQueries>(queries, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) nodes[i] = nodes[i] * kFanOut + less[i];
  }

  // Executes the pinned levels; returns the next level.
  template <int kQueries>
  __device__ int SearchPinned(const Key (&queries)[kQueries], uint32_t (&nodes)[kQueries],
                              const void* shared) const {
    const KeysView<Key> pinned{static_cast<const Key*>(shared)};
    for (int level = 0; level < pinned_levels; ++level) {
      const size_t before = layout.first_node(level);
      Descend<kQueries>(queries, nodes, [&](size_t node, PivotPart& part) {
        part.Load(pinned, (before + node) * kNodeKeys);
      });
    }
    const size_t before = layout.first_node(pinned_levels);
    if (pinned_nodes == before) return pinned_levels;
    Descend<kQueries>(queries, nodes, [&](size_t node, PivotPart& part) {
      part.Load(before + node < pinned_nodes ? pinned : pivots, (before + node) * kNodeKeys);
    });
    return pinned_levels + 1;
  }

  // Moves from the first entries of partitions to those of blocks. A binary search finds the first
  // block whose last key is not less than the query.
  template <int kQueries>
  __device__ void SearchPartitions(const Key (&queries)[kQueries],
                                   uint64_t (&first)[kQueries]) const {
    const uint64_t size = layout.entries();
    for (uint64_t blocks = layout.partition_blocks(); blocks > 1; blocks -= blocks / 2) {
      const uint64_t half = blocks / 2 * kNodeKeys;
      Key last[kQueries];
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        const uint64_t at = first[i] + half - 1;
        last[i] = at < size ? entries.key(at) : std::numeric_limits<Key>::max();
      }
#pragma unroll
      for (int i = 0; i < kQueries; ++i) first[i] += last[i] < queries[i] ? half : 0;
    }
  }

  // Compares with blocks of entries. If loads are whole, the rest of their lines is not needed.
  template <int kQueries>
  __device__ void CompareBlocks(const Key (&queries)[kQueries], const uint64_t (&first)[kQueries],
                                LeafPart (&parts)[kQueries], uint32_t (&less)[kQueries]) const {
    constexpr CacheUse kUse = kLanes > 1 ? CacheUse::kOnce : CacheUse::kKeep;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      parts[i].template Load<kUse>(entries, first[i], layout.entries());
    }
    Node::template CountLess<kQueries>(queries, parts, less);
  }
};

}  // namespace cairn::gpu
