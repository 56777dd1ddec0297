// The search kernels of CompressedPages, compiled once for each instruction set that Highway
// supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/fast/compressed_search.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

#include "cpu_fast/fast/compressed_search.h"
#include "cpu_fast/simd/simd_dispatch.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// How many queries ahead of the compared one to prefetch the words that locate a page's deltas
// (kPagesAhead), and the deltas themselves (kDeltasAhead).
constexpr size_t kDeltasAhead = 64;
constexpr size_t kPagesAhead = 96;
// How many queries after the comparison to read row ids.
constexpr size_t kRowsBehind = 64;

enum class Output { kPosition, kFirstRow };

// The number of a page's deltas that are at most `limit`. `limit` is clamped to the largest
// possible delta, so a query above the whole page counts all of them.
template <typename Delta, typename Key>
HWY_INLINE size_t CountAtMost(const uint8_t* HWY_RESTRICT deltas, Key limit) {
  constexpr size_t kPageKeys = CompressedPagesView<Key>::kPageKeys;
  constexpr Key kGreatest = hwy::LimitsMax<Delta>();
  const hn::CappedTag<Delta, kPageKeys> d;
  const auto v = hn::Set(d, static_cast<Delta>(limit < kGreatest ? limit : kGreatest));
  const auto* delta = reinterpret_cast<const Delta*>(deltas);
  size_t greater = 0;
  for (size_t i = 0; i < kPageKeys; i += hn::Lanes(d)) {
    greater += hn::CountTrue(d, hn::Gt(hn::LoadU(d, delta + i), v));
  }
  return kPageKeys - greater;
}

template <typename Key>
HWY_INLINE size_t CountAtMost(int width_log2, const uint8_t* HWY_RESTRICT deltas, Key limit) {
  switch (width_log2) {
    case 0:
      return CountAtMost<uint8_t>(deltas, limit);
    case 1:
      return CountAtMost<uint16_t>(deltas, limit);
    case 2:
      return CountAtMost<uint32_t>(deltas, limit);
    default:
      if constexpr (sizeof(Key) == 8) return CountAtMost<uint64_t>(deltas, limit);
      return 0;  // 32-bit keys have no 64-bit deltas
  }
}

// One batch's search of the pages, as a software pipeline. Each step handles four queries at
// different stages: it prefetches a page's words, prefetches a page's deltas, compares, and reads a
// row id.
template <typename Key, Output kOutput>
class PageSearch {
  using View = CompressedPagesView<Key>;

 public:
  explicit PageSearch(const View& pages) : pages_(pages) {}

  // The prefetches are inlined here, because GCC 12 drops calls of functions that do nothing else:
  // it treats them as having no effect.
  HWY_ATTR void Run(absl::Span<const Key> queries, uint32_t* out) const {
    const size_t size = queries.size();
    constexpr size_t kStages = kPagesAhead + (kOutput == Output::kFirstRow ? kRowsBehind : 0);
    for (size_t step = 0; step < size + kStages; ++step) {
      if (step < size) {
        const size_t page = PageOf(out[step]);
        Prefetch(pages_.groups + page / View::kGroupPages);
        Prefetch(pages_.minima + page);
      }
      const size_t asked = step - (kPagesAhead - kDeltasAhead);
      if (asked < size) {
        const CompressedPage page = pages_.Page(PageOf(out[asked]));
        const size_t bytes = View::kPageKeys << page.width_log2;
        for (size_t i = 0; i < bytes; i += kCacheLineBytes) Prefetch(page.deltas + i);
        // A page after narrower ones may start in the middle of a line and reach into the next.
        Prefetch(page.deltas + bytes - 1);
      }
      const size_t compared = step - kPagesAhead;
      if (compared < size) out[compared] = Compare(queries[compared], out[compared]);
      if constexpr (kOutput == Output::kFirstRow) {
        const size_t read = compared - kRowsBehind;
        if (read < size && out[read] != kNoRow) out[read] = pages_.row_ids[out[read]];
      }
    }
  }

 private:
  // The last page whose minimum is less than the query, or the first page if there is none.
  static size_t PageOf(uint32_t below) { return below - (below != 0); }

  // Returns the query's position, or for row ids kNoRow if no entry has its key.
  HWY_ATTR uint32_t Compare(Key query, uint32_t below) const {
    const size_t number = PageOf(below);
    const CompressedPage page = pages_.Page(number);
    const Key difference = query - pages_.minima[number];
    // If the minimum is less than the query, the difference is at least 1. Otherwise the page is
    // the first one, and the result is its first entry.
    const size_t less =
        below == 0 ? 0 : CountAtMost<Key>(page.width_log2, page.deltas, difference - 1);
    const size_t behind = number * View::kPageKeys + less;
    const size_t position = behind < pages_.entries ? behind : pages_.entries;
    if constexpr (kOutput == Output::kFirstRow) {
      if (position == pages_.entries) return kNoRow;
      const bool found = less < View::kPageKeys ? page.Delta(less) == difference
                                                : pages_.minima[number + 1] == query;
      if (!found) return kNoRow;
      Prefetch(pages_.row_ids + position);
    }
    return static_cast<uint32_t>(position);
  }

  const View& pages_;
};

template <typename Key, Output kOutput>
HWY_ATTR void Search(const CompressedPagesView<Key>& pages, absl::Span<const Key> queries,
                     uint32_t* out) {
  PageSearch<Key, kOutput>(pages).Run(queries, out);
}

template <typename Key>
const CompressedSearch<Key>& Searches() {
  static constexpr CompressedSearch<Key> kSearches = {Search<Key, Output::kPosition>,
                                                      Search<Key, Output::kFirstRow>};
  return kSearches;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {

template <typename Key>
const CompressedSearch<Key>& CompressedSearchFor(SimdLevel level) {
  switch (level) { CAIRN_LEVEL_CASES(Searches<Key>()) }
}

template const CompressedSearch<uint32_t>& CompressedSearchFor<uint32_t>(SimdLevel level);
template const CompressedSearch<uint64_t>& CompressedSearchFor<uint64_t>(SimdLevel level);

}  // namespace cairn
#endif  // HWY_ONCE
