// The search kernels over packed leaves, compiled once for each instruction set that Highway
// supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/packed/packed_search.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

#include <algorithm>
#include <type_traits>

#include "cpu_fast/packed/packed_search.h"
#include "cpu_fast/simd/simd_dispatch.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Queries per block: the distance between prefetching and reading a line, for cells and for leaves.
constexpr size_t kBlock = 64;

// How many of the first kCount lanes are less than x. Reads whole vectors, 64 bytes at most.
template <size_t kCount, typename T>
HWY_INLINE size_t CountLess(const T* HWY_RESTRICT lanes, T x) {
  constexpr size_t kPowerOfTwo = kCount <= 8 ? 8 : kCount <= 16 ? 16 : 32;
  const hn::CappedTag<T, kPowerOfTwo> d;
  const auto limit = hn::Set(d, x);
  size_t count = 0;
  for (size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    auto less = hn::Lt(hn::LoadU(d, lanes + i), limit);
    if (kCount - i < hn::Lanes(d)) less = hn::And(less, hn::FirstN(d, kCount - i));
    count += hn::CountTrue(d, less);
  }
  return count;
}

enum class Output { kPosition, kFirstRow };

// The search within one leaf. `walk`: `leaf` may be a few leaves before the right one; all keys of
// these are less than the query. kBounded: limits the walk to the distance that is possible in a
// valid index, and to the existing leaves.
template <typename Key, int kBits, Output kOutput, bool kBounded>
HWY_INLINE uint32_t SearchLeaf(const PackedView<Key>& view, size_t leaf, Key query, bool walk) {
  using Layout = LeafLayout<kBits>;
  using Low = typename Layout::Low;
  const auto low = static_cast<Low>(query);
  const unsigned char* bytes = view.leaves[leaf].bytes;
  if (HWY_UNLIKELY(walk)) {
    const size_t end = kBounded
                           ? std::min(leaf + PackedSearch<Key>::kMaxWalked + 1, view.leaf_count)
                           : view.leaf_count;
    while (reinterpret_cast<const Low*>(bytes)[Layout::kEntries - 1] < low && leaf + 1 < end) {
      bytes = view.leaves[++leaf].bytes;
    }
  }
  const auto* lanes = reinterpret_cast<const Low*>(bytes);
  if constexpr (kOutput == Output::kPosition) {
    const auto* first = reinterpret_cast<const Position*>(bytes + Layout::kPositionOffset);
    return *first + static_cast<uint32_t>(CountLess<Layout::kEntries>(lanes, low));
  } else {
    // The last lane is not compared here: if all other lanes are less, `at` is the last lane.
    const size_t at = CountLess<Layout::kEntries - 1>(lanes, low);
    const RowId row = reinterpret_cast<const RowId*>(bytes + Layout::kRowsOffset)[at];
    return lanes[at] == low ? row : kNoRow;
  }
}

// Computes the places of `count` keys among the cells of one group, as words (CellScale::WordOf).
HWY_INLINE void PlaceKeys(const CellScale<uint32_t>& scale, const uint32_t* HWY_RESTRICT keys,
                          size_t count, uint64_t* HWY_RESTRICT words) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has no widening multiplication
  const hn::ScalableTag<uint32_t> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto low = hn::Set(d, scale.low), high = hn::Set(d, scale.high);
  const auto multiplier = hn::Set(d, scale.multiplier);
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto clamped = hn::Min(hn::Max(hn::LoadU(d, keys + i), low), high);
    const auto coordinate = hn::ShiftLeftSame(hn::Sub(clamped, low), static_cast<int>(scale.shift));
    const auto even = hn::MulEven(coordinate, multiplier);
    const auto odd =
        hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, coordinate))), multiplier);
    hn::StoreInterleaved2(even, odd, d64, words + i);
  }
#endif
  for (; i < count; ++i) words[i] = scale.WordOf(keys[i]);
}
// The upper 64 of the product's 96 bits are the product of the key's upper half plus the carry from
// the product of its lower half.
HWY_INLINE void PlaceKeys(const CellScale<uint64_t>& scale, const uint64_t* HWY_RESTRICT keys,
                          size_t count, uint64_t* HWY_RESTRICT words) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const auto low = hn::Set(d, scale.low), high = hn::Set(d, scale.high);
  const auto multiplier = hn::Set(d32, scale.multiplier);
  const auto times = [&](auto halves) { return hn::MulEven(hn::BitCast(d32, halves), multiplier); };
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto clamped = hn::Min(hn::Max(hn::LoadU(d, keys + i), low), high);
    const auto coordinate = hn::ShiftLeftSame(hn::Sub(clamped, low), static_cast<int>(scale.shift));
    hn::StoreU(
        hn::Add(times(hn::ShiftRight<32>(coordinate)), hn::ShiftRight<32>(times(coordinate))), d,
        words + i);
  }
#endif
  for (; i < count; ++i) words[i] = scale.WordOf(keys[i]);
}

// The separators of a cell on steps before the query's, and whether any is on the query's own step.
struct Before {
  uint32_t leaf;  // the leaf after these separators
  bool same;
};
HWY_INLINE Before SeparatorsBefore(const Cell& cell, uint16_t query_step) {
  // Compares the whole line, without the two lanes of `first`.
  const hn::CappedTag<uint16_t, 32> d;
  const auto* lanes = reinterpret_cast<const uint16_t*>(&cell);
  const auto step = hn::Set(d, query_step);
  const auto head = hn::Load(d, lanes);
  size_t count = hn::CountTrue(d, hn::AndNot(hn::FirstN(d, 2), hn::Lt(head, step)));
  auto same = hn::Eq(head, step);
  // A vector of one lane has only half of `first`.
  for (size_t v = std::max(hn::Lanes(d), size_t{2}); v < 32; v += hn::Lanes(d)) {
    const auto some = hn::Load(d, lanes + v);
    count += hn::CountTrue(d, hn::Lt(some, step));
    same = hn::Or(same, hn::Eq(some, step));
  }
  return {cell.first + static_cast<uint32_t>(count), !hn::AllFalse(d, same)};
}

// groups[i] = the group of keys[i].
template <typename Key>
HWY_INLINE void FindGroups(const PackedView<Key>& view, const Key* HWY_RESTRICT keys, size_t count,
                           Key* HWY_RESTRICT groups) {
  constexpr size_t kNear = CellDirectory<Key>::kNearBounds;
  const bool few = view.far_bounds.empty();
  const absl::Span<const Key> bounds = few ? view.bounds : view.far_bounds;
  const hn::ScalableTag<Key> d;
  const auto one = hn::Set(d, Key{1});
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto key = hn::LoadU(d, keys + i);
    auto less = hn::Zero(d);
    for (const Key bound : bounds) {
      less = hn::IfThenElse(hn::Lt(hn::Set(d, bound), key), hn::Add(less, one), less);
    }
    hn::StoreU(less, d, groups + i);
  }
  for (; i < count; ++i) {
    groups[i] = 0;
    for (const Key bound : bounds) groups[i] += bound < keys[i];
  }
  if (few) return;
  for (i = 0; i < count; ++i) {
    const size_t near = groups[i] * kNear;
    groups[i] = static_cast<Key>(near + CountLess<kNear>(view.bounds.data() + near, keys[i]));
  }
}

// A software pipeline over blocks of queries: one block prefetches its cells, the block before it
// reads its cells and prefetches its leaves, and the block before that reads its leaves. A single
// loop over all three keeps the processor's units busy; separate loops would each wait. kGroups:
// there are several groups. kExact: all groups are exact. kBounded: cells may lead to leaves that
// do not exist; the extra comparison per query takes up to 1.2 times as long if all data is in the
// L2 cache.
template <typename Key, int kBits, Output kOutput, bool kGroups, bool kExact, bool kBounded>
class CellSearch {
 public:
  HWY_INLINE CellSearch(const PackedView<Key>& view, const Key* queries, size_t size, uint32_t* out)
      : view_(view), queries_(queries), size_(size), out_(out) {}

  HWY_INLINE void Run() {
    const size_t blocks = (size_ + kBlock - 1) / kBlock;
    for (size_t b = 0; b < blocks + 2; ++b) {
      if (b < blocks) Place(b);
      if (b >= 2 && Count(b) == kBlock) {
        for (size_t i = 0; i < kBlock; ++i) {
          AskForCell(b, i);
          ReadLeaf(b - 2, i);
          ReadCell(b - 1, i);
        }
      } else {
        for (size_t i = 0; i < Count(b); ++i) AskForCell(b, i);
        for (size_t i = 0; i < Count(b - 2); ++i) ReadLeaf(b - 2, i);
        for (size_t i = 0; i < Count(b - 1); ++i) ReadCell(b - 1, i);
      }
    }
  }

 private:
  // The number of queries of block `b`; 0 if there is no such block, also before the first one.
  HWY_INLINE size_t Count(size_t b) const {
    return b > size_ / kBlock ? 0 : std::min(kBlock, size_ - b * kBlock);
  }

  // Computes the places of a block's queries, or with several groups only their groups: the part
  // that is faster for a whole block than per query.
  HWY_INLINE void Place(size_t b) {
    const Key* queries = queries_ + b * kBlock;
    if constexpr (kGroups) {
      FindGroups(view_, queries, Count(b), groups_);
    } else {
      PlaceKeys(view_.groups[0], queries, Count(b), words_[b % 2]);
    }
  }

  HWY_INLINE void AskForCell(size_t b, size_t i) {
    if constexpr (kGroups) {
      words_[b % 2][i] = view_.groups[groups_[i]].WordOf(queries_[b * kBlock + i]);
    }
    Prefetch(view_.cells + CellScale<Key>::PlaceOfWord(words_[b % 2][i]).cell);
  }

  HWY_INLINE void ReadCell(size_t b, size_t i) {
    const auto place = CellScale<Key>::PlaceOfWord(words_[b % 2][i]);
    Before before = SeparatorsBefore(view_.cells[place.cell], place.step);
    if constexpr (kBounded) {
      before.leaf = std::min(before.leaf, static_cast<uint32_t>(view_.leaf_count - 1));
    }
    leaves_[b % 2][i] = before.leaf;
    Prefetch(view_.leaves + before.leaf);
    if constexpr (!kExact) {
      // Only the leaf can show whether a separator on the query's step is less than the query.
      walk_[b % 2][i] = before.same;
      if (HWY_UNLIKELY(before.same)) Prefetch(view_.leaves + before.leaf + 1);
    }
  }

  HWY_INLINE void ReadLeaf(size_t b, size_t i) {
    const size_t query = b * kBlock + i;
    out_[query] = SearchLeaf<Key, kBits, kOutput, kBounded>(
        view_, leaves_[b % 2][i], queries_[query], !kExact && walk_[b % 2][i]);
  }

  const PackedView<Key> view_;
  const Key* HWY_RESTRICT queries_;
  const size_t size_;
  uint32_t* HWY_RESTRICT out_;
  Key groups_[kBlock];  // groups of the latest block's queries
  // For the latest two blocks: the places of their queries, and the leaves they wait for.
  uint64_t words_[2][kBlock];
  uint32_t leaves_[2][kBlock];
  bool walk_[2][kBlock];
};

template <typename Key, int kBits, Output kOutput, bool kExact, bool kBounded>
void SearchCells(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  const auto search = [&]<bool kGroups>(std::bool_constant<kGroups>) {
    CellSearch<Key, kBits, kOutput, kGroups, kExact, kBounded>(view, queries.data(), queries.size(),
                                                               out)
        .Run();
  };
  view.groups.size() == 1 ? search(std::false_type()) : search(std::true_type());
}

template <typename Key, int kBits, Output kOutput>
void SearchLeaves(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    out[i] = SearchLeaf<Key, kBits, kOutput, true>(view, out[i], queries[i], false);
  }
}

template <typename Key, int kBits, bool kExact, bool kBounded>
const PackedSearch<Key>& Searches() {
  static constexpr PackedSearch<Key> kSearches = {
      SearchCells<Key, kBits, Output::kPosition, kExact, kBounded>,
      SearchCells<Key, kBits, Output::kFirstRow, kExact, kBounded>,
      SearchLeaves<Key, kBits, Output::kPosition>,
      SearchLeaves<Key, kBits, Output::kFirstRow>,
  };
  return kSearches;
}

// If leaves keep fewer bits than the key has, cells are exact: CellDirectory was built that way.
template <typename Key, bool kBounded>
const PackedSearch<Key>& SearchesFor(int bits, bool exact) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  if (bits == 16) return Searches<Key, 16, true, kBounded>();
  if (bits < kKeyBits) return Searches<Key, 32, true, kBounded>();
  return exact ? Searches<Key, kKeyBits, true, kBounded>()
               : Searches<Key, kKeyBits, false, kBounded>();
}
template <typename Key>
const PackedSearch<Key>& SearchesFor(int bits, bool exact, LeafTrust trust) {
  return trust == LeafTrust::kNone ? SearchesFor<Key, true>(bits, exact)
                                   : SearchesFor<Key, false>(bits, exact);
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {

template <typename Key>
const PackedSearch<Key>& PackedSearchFor(SimdLevel level, int bits, bool exact, LeafTrust trust) {
  switch (level) { CAIRN_LEVEL_CASES(SearchesFor<Key>(bits, exact, trust)) }
}

template const PackedSearch<uint32_t>& PackedSearchFor(SimdLevel, int, bool, LeafTrust);
template const PackedSearch<uint64_t>& PackedSearchFor(SimdLevel, int, bool, LeafTrust);

}  // namespace cairn
#endif  // HWY_ONCE
