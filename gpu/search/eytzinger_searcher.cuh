#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/layout/eytzinger_layout.h"
#include "gpu/run/entry_array.h"
#include "gpu/search/node_search.cuh"
#include "gpu/search/search_kernel.cuh"

namespace cairn::gpu {

// Searches entries in Eytzinger order: EO+BS (kFanOut = 2) and EO+KS of Henneberg and Schuhknecht
// (2025), sections 3.2 and 3.4. Slots of the last node without an entry have the maximum key. The
// keys of the first nodes are pinned (section 4.2).
//
// Every search descends to the leaf level. The paper's search stops at an equal key, but here the
// first of several duplicates is needed, and nearly all keys are in leaves anyway. The rank follows
// from the path.
template <typename Key, int kFanOut, EntryLayout kLayout, int kLaneCount>
struct EytzingerSearcher {
  struct Slot {
    uint32_t slot;  // kNoSlot past the last entry
    uint32_t rank;
  };
  using DataType = Key;
  using Layout = EytzingerLayout<kFanOut>;
  using Node = NodeSearch<Key, kFanOut - 1, kLaneCount>;
  static constexpr int kLanes = kLaneCount;
  static constexpr uint32_t kNodeKeys = kFanOut - 1;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  EntryView<Key, kLayout> entries;
  Layout layout;
  int pinned_levels = 0;  // full levels whose nodes are all pinned
  // Pinned nodes in total, possibly including part of the next full level.
  uint32_t pinned_nodes = 0;

  EytzingerSearcher(EntryView<Key, kLayout> view, const Layout& eytzinger_layout)
      : entries(view), layout(eytzinger_layout) {}

  // Pins as many nodes as fit `bytes` of shared memory.
  void PinUpTo(size_t bytes, Pinning pinning) {
    const size_t all = layout.inner_entries() / kNodeKeys;
    const size_t fits = std::min(bytes / (sizeof(Key) * kNodeKeys), all);
    uint32_t start = 0;
    for (pinned_levels = 0; pinned_levels < layout.levels(); ++pinned_levels) {
      if (Layout::Next(start) / kNodeKeys > fits) break;
      start = Layout::Next(start);
    }
    pinned_nodes = pinning == Pinning::kFull ? static_cast<uint32_t>(fits) : start / kNodeKeys;
  }

  __host__ __device__ size_t pinned_bytes() const {
    return size_t{pinned_nodes} * kNodeKeys * sizeof(Key);
  }

  __device__ void Pin(void* shared) const {
    for (uint32_t i = threadIdx.x; i < pinned_nodes * kNodeKeys; i += blockDim.x) {
      static_cast<Key*>(shared)[i] = entries.key(i);
    }
  }

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void* pinned) const {
    Descent<kQueries> way;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) way.slots[i] = kNoSlot;
    if (pinned != nullptr) SearchPinned(queries, way, pinned);
    while (way.level < layout.levels()) {
      way.template Descend<View>(
          queries, [&](size_t first, Part<View>& part) { part.Load(entries, first); });
    }
    uint32_t less[kQueries] = {};
    if (layout.leaf_entries() > 0) SearchLeaves(queries, way, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      slots[i] = {way.slots[i], layout.RankOfLeaf(way.nodes[i], less[i])};
    }
  }

  __device__ Position position(Slot slot) const {
    return slot.rank;
  }
  __device__ bool Equals(Slot slot, Key key) const {
    return slot.slot != kNoSlot && entries.key(slot.slot) == key;
  }
  __device__ RowId row_id(Slot slot) const {
    return entries.row_id(slot.slot);
  }

 private:
  using View = EntryView<Key, kLayout>;
  template <typename V>
  using Part = typename Node::template Part<V>;

  // The current positions of a thread's queries.
  template <int kQueries>
  struct Descent {
    int level = 0;
    uint32_t start = 0;             // first slot of the level
    uint32_t nodes[kQueries] = {};  // within the level
    uint32_t slots[kQueries];       // the least entry so far that is not less than the query

    __device__ size_t first(int i) const { return start + size_t{nodes[i]} * kNodeKeys; }

    // Compares with the nodes of a full level; load(slot, part) reads the node that starts at a
    // slot.
    template <typename V, typename Load>
    __device__ void Descend(const Key (&queries)[kQueries], Load load) {
      Part<V> parts[kQueries];
      uint32_t less[kQueries];
#pragma unroll
      for (int i = 0; i < kQueries; ++i) load(first(i), parts[i]);
      Node::template CountLess<kQueries>(queries, parts, less);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        if (less[i] < kNodeKeys) slots[i] = static_cast<uint32_t>(first(i)) + less[i];
        nodes[i] = nodes[i] * kFanOut + less[i];
      }
      start = Layout::Next(start);
      ++level;
    }
  };

  template <int kQueries>
  __device__ void SearchPinned(const Key (&queries)[kQueries], Descent<kQueries>& way,
                               const void* shared) const {
    using Keys = KeysView<Key>;
    const Keys pinned{static_cast<const Key*>(shared)};
    while (way.level < pinned_levels) {
      way.template Descend<Keys>(queries,
                                 [&](size_t first, Part<Keys>& part) { part.Load(pinned, first); });
    }
    if (pinned_nodes * kNodeKeys == way.start) return;
    way.template Descend<Keys>(queries, [&](size_t first, Part<Keys>& part) {
      if (first < pinned_nodes * kNodeKeys) {
        part.Load(pinned, first);
        return;
      }
#pragma unroll
      for (int i = 0; i < Node::kPerLane; ++i) {
        part.keys[i] = entries.key(first + Part<Keys>::Place(i));
      }
    });
  }

  // Searches the leaf level, whose nodes may be missing or partly filled.
  template <int kQueries>
  __device__ void SearchLeaves(const Key (&queries)[kQueries], Descent<kQueries>& way,
                               uint32_t (&less)[kQueries]) const {
    Part<View> parts[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (way.first(i) < layout.entries()) {
        parts[i].Load(entries, way.first(i));
      } else {
        parts[i].Fill(queries[i]);
      }
    }
    Node::template CountLess<kQueries>(queries, parts, less);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const size_t slot = way.first(i) + less[i];
      if (less[i] < kNodeKeys && slot < layout.entries()) {
        way.slots[i] = static_cast<uint32_t>(slot);
      }
    }
  }
};

}  // namespace cairn::gpu
