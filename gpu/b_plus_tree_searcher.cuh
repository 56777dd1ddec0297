#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cairn/types.h"
#include "gpu/b_plus_tree_pages.cuh"

// Searchers of B+-trees for the frame of search_kernel.cuh, over packed or linked pages: Kaczmarek,
// "B+-Tree Optimized for GPGPU" (2012), section 2.3.
namespace cairn::gpu {

// What a search brings home from the leaf, besides the place.
enum class LeafAnswer : uint8_t {
  kPlace,   // nothing
  kEquals,  // whether the key is there
  kRow,     // and its row
};

// Where a lower bound is. `found` is kNoRow unless the key is there (kEquals, kRow); else it is the
// row, if that was read along with the keys.
struct BPlusTreeSlot {
  uint32_t leaf;
  uint32_t offset;
  RowId found;
};

// What searchers answer from slots.
template <typename Key, typename Pages>
struct BPlusTreeAnswers {
  using KeyType = Key;
  using Slot = BPlusTreeSlot;

  Pages pages;
  LeafAnswer answer;

  __host__ __device__ size_t pinned_bytes() const { return 0; }
  __device__ void Pin(void*) const {}

  // A slot behind a leaf's last entry is behind all.
  __device__ Position position(Slot slot) const {
    return pages.FirstPosition(slot.leaf) + slot.offset;
  }
  // Requires kEquals or kRow. What pads pages equals the greatest key.
  __device__ bool Equals(Slot slot, Key key) const {
    return slot.found != kNoRow &&
           (key != std::numeric_limits<Key>::max() || slot.offset < pages.LeafSize(slot.leaf));
  }
};

// One thread does a query's binary searches; or kLanesOfQuery do, all the same.
template <typename Key, typename Pages, int kLanesOfQuery>
struct BPlusTreeBinarySearcher : BPlusTreeAnswers<Key, Pages> {
  static constexpr int kLanes = kLanesOfQuery;

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], BPlusTreeSlot (&slots)[kQueries],
                             const void*) const {
    const auto& pages = this->pages;
    uint32_t page[kQueries], rank[kQueries];
    const Key* keys[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) page[i] = pages.root();
#pragma unroll 1
    for (int level = pages.levels() - 1; level > 0; --level) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) keys[i] = pages.Separators(pages.Number(level, page[i]));
      RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) page[i] = pages.Child(level, page[i], rank[i]);
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) keys[i] = pages.Keys(page[i]);
    RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const bool equal = this->answer != LeafAnswer::kPlace && rank[i] < pages.order() &&
                         keys[i][rank[i]] == queries[i];
      slots[i] = {page[i], rank[i], equal ? 0 : kNoRow};
    }
  }
  __device__ RowId row_id(BPlusTreeSlot slot) const {
    return this->pages.Rows(slot.leaf)[slot.offset];
  }

 private:
  // How many of each page's keys are less than the query.
  template <int kQueries>
  __device__ void RankInPages(const Key* const (&keys)[kQueries], const Key (&queries)[kQueries],
                              uint32_t (&rank)[kQueries]) const {
#pragma unroll
    for (int i = 0; i < kQueries; ++i) rank[i] = 0;
#pragma unroll 1
    for (uint32_t step = this->pages.order() / 2; step > 0; step /= 2) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        if (keys[i][rank[i] + step - 1] < queries[i]) rank[i] += step;
      }
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) rank[i] += keys[i][rank[i]] < queries[i] ? 1 : 0;
  }
};

// kLanesOfQuery lanes read a page together, in vectors of 16 bytes, and count the keys that are
// less: unlike the paper's threads, which look for the pair of neighbours that the key is between,
// they need no second read, and one shuffle for each doubling of lanes sums up to four queries.
// Small leaves come with their row ids at once.
template <typename Key, typename Pages, int kOrder, int kLanesOfQuery>
struct BPlusTreeCombinedSearcher : BPlusTreeAnswers<Key, Pages> {
  static constexpr int kLanes = kLanesOfQuery;
  static constexpr int kVector = 16 / sizeof(Key);
  static constexpr int kVectors = kOrder / (kVector * kLanes);  // of a page, for each lane
  static_assert(kVectors * kVector * kLanes == kOrder);
  // Reads of 128 bytes cost little more than of 64, but a second one costs as much again.
  static constexpr bool kRowsWithKeys = kOrder * (sizeof(Key) + sizeof(RowId)) <= 192;

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], BPlusTreeSlot (&slots)[kQueries],
                             const void*) const {
    const auto& pages = this->pages;
    uint32_t page[kQueries], rank[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) page[i] = pages.root();
#pragma unroll 1
    for (int level = pages.levels() - 1; level > 0; --level) {
      PageKeys keys[kQueries];
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        keys[i].template Load<false>(
            pages.template Separators<kOrder>(pages.Number(level, page[i])));
      }
      RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) page[i] = pages.Child(level, page[i], rank[i]);
    }
    SearchLeaves<kQueries>(queries, page, slots);
  }
  __device__ RowId row_id(BPlusTreeSlot slot) const {
    if constexpr (kRowsWithKeys) return slot.found;
    return this->pages.Rows(slot.leaf)[slot.offset];
  }

 private:
  static __device__ int lane() {
    return static_cast<int>(threadIdx.x) % kLanes;
  }

  // A lane's part of some array of a page: vectors lane(), lane() + kLanes, …
  template <typename T>
  struct PagePart {
    static constexpr int kBytes = kVector * sizeof(T);
    using Vector = std::conditional_t<kBytes == 16, uint4, uint2>;
    union {
      Vector vectors[kVectors];
      T items[kVectors * kVector];
    };

    // kOnce: leaves are not likely to be read again soon, so they should leave caches first.
    template <bool kOnce>
    __device__ void Load(const T* page) {
      const Vector* const from = reinterpret_cast<const Vector*>(page) + lane();
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        vectors[v] = kOnce ? __ldcs(from + v * kLanes) : __ldg(from + v * kLanes);
      }
    }
    // Item `index` modulo their number, by halving, so that all stay in registers.
    __device__ T At(uint32_t index) const {
      T some[kVectors * kVector];
#pragma unroll
      for (int i = 0; i < kVectors * kVector; ++i) some[i] = items[i];
#pragma unroll
      for (int half = kVectors * kVector / 2; half > 0; half /= 2) {
        const bool upper = (index & static_cast<uint32_t>(half)) != 0;
#pragma unroll
        for (int i = 0; i < half; ++i) some[i] = upper ? some[i + half] : some[i];
      }
      return some[0];
    }
  };
  using PageKeys = PagePart<Key>;
  using PageRows = PagePart<RowId>;

  // How many of each page's keys are less than the query, for all lanes.
  template <int kQueries>
  static __device__ void RankInPages(const PageKeys (&keys)[kQueries],
                                     const Key (&queries)[kQueries], uint32_t (&rank)[kQueries]) {
    constexpr int kPacked = 4;  // counts up to 64, a byte each
#pragma unroll
    for (int first = 0; first < kQueries; first += kPacked) {
      uint32_t counts = 0;
#pragma unroll
      for (int i = first; i < kQueries && i < first + kPacked; ++i) {
#pragma unroll
        for (int k = 0; k < kVectors * kVector; ++k) {
          counts += keys[i].items[k] < queries[i] ? 1u << (8 * (i - first)) : 0;
        }
      }
#pragma unroll
      for (int other = 1; other < kLanes; other *= 2) {
        counts += __shfl_xor_sync(0xffffffffu, counts, other);
      }
#pragma unroll
      for (int i = first; i < kQueries && i < first + kPacked; ++i) {
        rank[i] = counts >> (8 * (i - first)) & 0xff;
      }
    }
  }

  template <int kQueries>
  __device__ void SearchLeaves(const Key (&queries)[kQueries], const uint32_t (&leaf)[kQueries],
                               BPlusTreeSlot (&slots)[kQueries]) const {
    const bool read_rows = kRowsWithKeys && this->answer == LeafAnswer::kRow;
    PageKeys keys[kQueries];
    PageRows rows[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      keys[i].template Load<true>(this->pages.template Keys<kOrder>(leaf[i]));
      if (read_rows) rows[i].template Load<true>(this->pages.template Rows<kOrder>(leaf[i]));
    }
    uint32_t rank[kQueries];
    RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      slots[i] = {leaf[i], rank[i], kNoRow};
      if (this->answer == LeafAnswer::kPlace) continue;
      // The lane that has the item at the lower bound tells the others.
      const uint32_t place = rank[i] % (kVector * kLanes) / kVector;
      const uint32_t item = rank[i] / (kVector * kLanes) * kVector + rank[i] % kVector;
      RowId found = kNoRow;
      if (keys[i].At(item) == queries[i]) found = read_rows ? rows[i].At(item) : 0;
      found = __shfl_sync(0xffffffffu, found, static_cast<int>(place), kLanes);
      if (rank[i] < kOrder) slots[i].found = found;
    }
  }
};

}  // namespace cairn::gpu
