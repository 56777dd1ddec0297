#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cairn/types.h"
#include "gpu/btree/b_plus_tree_pages.cuh"

// Searchers of B+-trees for the kernel frame of search_kernel.cuh, over packed or linked pages:
// Kaczmarek, "B+-Tree Optimized for GPGPU" (2012), section 2.3.
namespace cairn::gpu {

// Reads 8 or 16 bytes of a leaf. They are unlikely to be read again soon, so they must not evict
// other data from the first-level cache. With an evict-first policy for the second-level cache, row
// ids would be evicted before they are read after their keys: 13.0, not 18.9 G lookups/s, u32, n =
// 2^28. Loads of inner pages should stay cached, even for levels larger than the first-level cache:
// otherwise 16.1.
template <typename Vector>
__device__ Vector LoadFromLeaf(const Vector* from) {
  Vector v;
  if constexpr (sizeof(Vector) == 16) {
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
  } else {
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  }
  return v;
}

// The common part of the searchers. Slots are offsets in leaves; a slot past a leaf's last entry is
// past all entries.
template <typename Key, typename Pages>
struct BPlusTreeSearcher {
  using DataType = Key;
  struct Slot {
    uint32_t leaf, offset;
  };

  Pages pages;
  // Whether FirstRows returns row ids; otherwise it returns 0 for existing keys.
  bool rows_wanted;

  __host__ __device__ size_t pinned_bytes() const { return 0; }
  __device__ void Pin(void*) const {}
  __device__ Position position(Slot slot) const {
    return pages.FirstPosition(slot.leaf) + slot.offset;
  }

 protected:
  // The result of FirstRows for a key that equals the key at its lower bound. Empty places of
  // leaves have the maximum key and kNoRow.
  __device__ RowId RowOfEqual(Key key, Slot slot) const {
    if (rows_wanted) return pages.Rows(slot.leaf)[slot.offset];
    const bool there =
        key != std::numeric_limits<Key>::max() || slot.offset < pages.LeafSize(slot.leaf);
    return there ? 0 : kNoRow;
  }
};

// One thread executes a query's binary searches, or kLanesOfQuery threads execute the same one.
template <typename Key, typename Pages, int kLanesOfQuery>
struct BPlusTreeBinarySearcher : BPlusTreeSearcher<Key, Pages> {
  static constexpr int kLanes = kLanesOfQuery;

  using typename BPlusTreeSearcher<Key, Pages>::Slot;

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void*) const {
    const auto& pages = this->pages;
    uint32_t page[kQueries], rank[kQueries];
    const Key* keys[kQueries];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) page[i] = pages.root();
#pragma unroll 1
    for (int level = pages.levels() - 1; level > 0; --level) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        keys[i] = pages.Separators(pages.Number(level, page[i]));
      }
      RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) page[i] = pages.Child(level, page[i], rank[i]);
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) keys[i] = pages.Keys(page[i]);
    RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) slots[i] = {page[i], rank[i]};
  }

  template <int kQueries>
  __device__ void FirstRows(const Key (&queries)[kQueries], RowId (&row_ids)[kQueries],
                            const void*) const {
    Slot slots[kQueries];
    LowerBound<kQueries>(queries, slots, nullptr);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      const bool equal = slots[i].offset < this->pages.order() &&
                         this->pages.Keys(slots[i].leaf)[slots[i].offset] == queries[i];
      row_ids[i] = equal ? this->RowOfEqual(queries[i], slots[i]) : kNoRow;
    }
  }

 private:
  // Computes the number of each page's keys that are less than the query.
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

// kLanesOfQuery lanes read a page together, in 16-byte vectors, and count the lesser keys. The
// paper's threads look for the two adjacent keys that enclose the query. Counting needs no second
// read, and one shuffle per doubling of lanes adds up the counts of four queries. Small leaves are
// read together with their row ids.
template <typename Key, typename Pages, int kOrder, int kLanesOfQuery>
struct BPlusTreeCombinedSearcher : BPlusTreeSearcher<Key, Pages> {
  static constexpr int kLanes = kLanesOfQuery;
  static constexpr int kVector = 16 / sizeof(Key);
  static constexpr int kVectors = kOrder / (kVector * kLanes);  // per page and lane
  static_assert(kVectors * kVector * kLanes == kOrder);
  // Reads of 128 bytes cost little more than those of 64, but a second read costs as much again.
  static constexpr bool kRowsWithKeys = kOrder * (sizeof(Key) + sizeof(RowId)) <= 192;

  using typename BPlusTreeSearcher<Key, Pages>::Slot;

  template <int kQueries>
  __device__ void LowerBound(const Key (&queries)[kQueries], Slot (&slots)[kQueries],
                             const void*) const {
    uint32_t leaf[kQueries], rank[kQueries];
    DescendToLeaves<kQueries>(queries, leaf);
    PageKeys keys[kQueries];
    LoadKeys<kQueries>(leaf, keys);
    RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) slots[i] = {leaf[i], rank[i]};
  }

  template <int kQueries>
  __device__ void FirstRows(const Key (&queries)[kQueries], RowId (&row_ids)[kQueries],
                            const void*) const {
    const bool read_rows = kRowsWithKeys && this->rows_wanted;
    uint32_t leaf[kQueries], rank[kQueries];
    DescendToLeaves<kQueries>(queries, leaf);
    PageKeys keys[kQueries];
    PageRows rows[kQueries];
    LoadKeys<kQueries>(leaf, keys);
    if (read_rows) {
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        rows[i].template Load<true>(this->pages.template Rows<kOrder>(leaf[i]));
      }
    }
    RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      // The lane with the item at the lower bound sends it to the others.
      const uint32_t place = rank[i] % (kVector * kLanes) / kVector;
      const uint32_t item = rank[i] / (kVector * kLanes) * kVector + rank[i] % kVector;
      RowId row = kNoRow;
      if (keys[i].At(item) == queries[i]) row = read_rows ? rows[i].At(item) : 0;
      row = __shfl_sync(0xffffffffu, row, static_cast<int>(place), kLanes);
      if (rank[i] >= kOrder) row = kNoRow;
      if (!read_rows && row == 0) row = this->RowOfEqual(queries[i], {leaf[i], rank[i]});
      row_ids[i] = row;
    }
  }

 private:
  static __device__ int lane() {
    return static_cast<int>(threadIdx.x) % kLanes;
  }

  // A lane's part of an array of a page: vectors lane(), lane() + kLanes, …
  template <typename T>
  struct PagePart {
    static constexpr int kBytes = kVector * sizeof(T);
    using Vector = std::conditional_t<kBytes == 16, uint4, uint2>;
    union {
      Vector vectors[kVectors];
      T items[kVectors * kVector];
    };

    template <bool kLeaf>
    __device__ void Load(const T* page) {
      const Vector* const from = reinterpret_cast<const Vector*>(page) + lane();
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        vectors[v] = kLeaf ? LoadFromLeaf(from + v * kLanes) : __ldg(from + v * kLanes);
      }
    }
    // Item `index` modulo the number of items, by repeated halving, so that all items stay in
    // registers.
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

  // Computes the number of each page's keys that are less than the query, for all lanes.
  template <int kQueries>
  static __device__ void RankInPages(const PageKeys (&keys)[kQueries],
                                     const Key (&queries)[kQueries], uint32_t (&rank)[kQueries]) {
    constexpr int kPacked = 4;  // counts of up to 64, one byte each
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
  __device__ void DescendToLeaves(const Key (&queries)[kQueries],
                                  uint32_t (&page)[kQueries]) const {
    const auto& pages = this->pages;
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
      uint32_t rank[kQueries];
      RankInPages<kQueries>(keys, queries, rank);
#pragma unroll
      for (int i = 0; i < kQueries; ++i) page[i] = pages.Child(level, page[i], rank[i]);
    }
  }

  template <int kQueries>
  __device__ void LoadKeys(const uint32_t (&leaf)[kQueries], PageKeys (&keys)[kQueries]) const {
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      keys[i].template Load<true>(this->pages.template Keys<kOrder>(leaf[i]));
    }
  }
};

}  // namespace cairn::gpu
