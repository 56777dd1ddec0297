// The search kernels over packed leaves, compiled once for each instruction set that Highway knows
// and once as plain C++ (cpu_fast/packed/packed_search_scalar.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/packed/packed_search.cc"
#include "hwy/foreach_target.h"
// Highway must come behind foreach_target.
#include "hwy/highway.h"

#include "cpu_fast/packed/packed_search.h"
#include "cpu_fast/packed/packed_search_scalar.h"
#include "cpu_fast/simd/simd_dispatch.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How many queries lie between asking for a line and reading it, cells and leaves alike: as many
// lines are in flight. Powers of two.
constexpr size_t kCellAhead = 64;
constexpr size_t kLeafAhead = 64;

// The number of the first kCount lanes that are less than x. Reads whole vectors, 64 bytes at most.
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

// One leaf's part of a search. kWalk: the leaf may be a few before the right one, in which every
// key is less than the query.
template <typename Key, int kBits, Output kOutput, bool kWalk>
HWY_INLINE uint32_t SearchLeaf(const PackedView<Key>& view, size_t leaf, Key query) {
  using Layout = LeafLayout<kBits>;
  using Low = typename Layout::Low;
  const auto low = static_cast<Low>(query);
  const unsigned char* bytes = view.leaves[leaf].bytes;
  if constexpr (kWalk) {
    while (HWY_UNLIKELY(reinterpret_cast<const Low*>(bytes)[Layout::kEntries - 1] < low) &&
           leaf + 1 < view.leaf_count) {
      bytes = view.leaves[++leaf].bytes;
    }
  }
  const auto* lanes = reinterpret_cast<const Low*>(bytes);
  if constexpr (kOutput == Output::kPosition) {
    const auto* first = reinterpret_cast<const Position*>(bytes + Layout::kPositionOffset);
    return *first + static_cast<uint32_t>(CountLess<Layout::kEntries>(lanes, low));
  } else {
    // The last lane need not be compared: where all others are less, it is the one to look at.
    const size_t at = CountLess<Layout::kEntries - 1>(lanes, low);
    const RowId row = reinterpret_cast<const RowId*>(bytes + Layout::kRowsOffset)[at];
    return lanes[at] == low ? row : kNoRow;
  }
}

// A software pipeline over queries: each turn one query asks for its cell, one that asked
// kCellAhead turns ago reads it and asks for its leaf, and one that asked for that kLeafAhead turns
// ago is answered. One loop over all three keeps the processor's units busy where a loop for each
// would wait in turn.
template <typename Key, int kBits, Output kOutput, bool kWalk>
class CellSearch {
 public:
  HWY_INLINE CellSearch(const PackedView<Key>& view, const Key* queries, uint32_t* out)
      : view_(view), queries_(queries), out_(out) {}

  HWY_INLINE void Run(size_t size) {
    size_t asked = 0, found = 0, answered = 0;
    while (asked < size && asked < kCellAhead) AskForCell(asked++);
    while (asked < size && found < kLeafAhead) AskForCell(asked++), ReadCell(found++);
    while (asked < size) AskForCell(asked++), ReadLeaf(answered++), ReadCell(found++);
    while (found < size) {
      if (found - answered == kLeafAhead) ReadLeaf(answered++);
      ReadCell(found++);
    }
    while (answered < size) ReadLeaf(answered++);
  }

 private:
  HWY_INLINE void AskForCell(size_t i) const {
    Prefetch(view_.cells + view_.scale.PlaceOf(queries_[i]).cell);
  }

  HWY_INLINE void ReadCell(size_t i) {
    const auto place = view_.scale.PlaceOf(queries_[i]);
    const Cell& cell = view_.cells[place.cell];
    // The whole line is compared, and the two lanes of `first` left out.
    const hn::CappedTag<uint16_t, 32> d;
    const auto* lanes = reinterpret_cast<const uint16_t*>(&cell);
    const auto step = hn::Set(d, place.step);
    const auto less = hn::Lt(hn::Load(d, lanes), step);
    size_t count = hn::CountTrue(d, hn::AndNot(hn::FirstN(d, 2), less));
    for (size_t v = hn::Lanes(d); v < 32; v += hn::Lanes(d)) {
      count += hn::CountTrue(d, hn::Lt(hn::Load(d, lanes + v), step));
    }
    const uint32_t leaf = cell.first + static_cast<uint32_t>(count);
    leaves_[i % kLeafAhead] = leaf;
    Prefetch(view_.leaves + leaf);
  }

  HWY_INLINE void ReadLeaf(size_t i) {
    out_[i] = SearchLeaf<Key, kBits, kOutput, kWalk>(view_, leaves_[i % kLeafAhead], queries_[i]);
  }

  const PackedView<Key> view_;
  const Key* HWY_RESTRICT queries_;
  uint32_t* HWY_RESTRICT out_;
  uint32_t leaves_[kLeafAhead];  // of queries that wait for them
};

template <typename Key, int kBits, Output kOutput, bool kWalk>
void SearchCells(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  CellSearch<Key, kBits, kOutput, kWalk>(view, queries.data(), out).Run(queries.size());
}

template <typename Key, int kBits, Output kOutput>
void SearchLeaves(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    out[i] = SearchLeaf<Key, kBits, kOutput, false>(view, out[i], queries[i]);
  }
}

template <typename Key, int kBits, bool kWalk>
const PackedSearch<Key>& Searches() {
  static constexpr PackedSearch<Key> kSearches = {
      SearchCells<Key, kBits, Output::kPosition, kWalk>,
      SearchCells<Key, kBits, Output::kFirstRow, kWalk>,
      SearchLeaves<Key, kBits, Output::kPosition>,
      SearchLeaves<Key, kBits, Output::kFirstRow>,
  };
  return kSearches;
}

// Cells are exact for leaves that keep fewer bits than the key has: CellDirectory was told so.
template <typename Key>
const PackedSearch<Key>& SearchesFor(int bits, bool exact) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  if (bits == 16) return Searches<Key, 16, false>();
  if (bits < kKeyBits) return Searches<Key, 32, false>();
  return exact ? Searches<Key, kKeyBits, false>() : Searches<Key, kKeyBits, true>();
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {

template <typename Key>
const PackedSearch<Key>& PackedSearchFor(SimdLevel level, int bits, bool exact) {
  switch (level) {
    CAIRN_SIMD_CASES(SearchesFor<Key>(bits, exact))
    default:
      return ScalarPackedSearch<Key>(bits);
  }
}

template const PackedSearch<uint32_t>& PackedSearchFor(SimdLevel, int, bool);
template const PackedSearch<uint64_t>& PackedSearchFor(SimdLevel, int, bool);

}  // namespace cairn
#endif  // HWY_ONCE
