#include "index/sort/bucket_sort.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <cstddef>
#include <functional>

namespace cairn {
namespace {

// Below it, the preparations of a vectorized sort cost more than it saves: with entries of 8 and of
// 16 bytes it is on a par with std::sort at 32 of them.
constexpr size_t kFewEntries = 32;

// Both are a little-endian 128-bit number, the order's leading half last.
static_assert(sizeof(hwy::uint128_t) == sizeof(Entry64) &&
              offsetof(hwy::uint128_t, hi) == offsetof(Entry64, high));
static_assert(sizeof(hwy::uint128_t) == sizeof(BytesEntry) &&
              offsetof(hwy::uint128_t, hi) == offsetof(BytesEntry, partial_key));

template <typename Word>
void VectorizedSort(Word* words, size_t size) {
  thread_local const hwy::Sorter sorter;  // holds scratch memory
  sorter(words, size, hwy::SortAscending());
}

}  // namespace

void SortBucket(absl::Span<Entry32> entries) {
  if (entries.size() < kFewEntries) {
    std::sort(entries.begin(), entries.end());
  } else {
    VectorizedSort(&entries[0].word, entries.size());
  }
}

void SortBucket(absl::Span<Entry64> entries) {
  if (entries.size() < kFewEntries) {
    std::sort(entries.begin(), entries.end());
  } else {
    VectorizedSort(reinterpret_cast<hwy::uint128_t*>(entries.data()), entries.size());
  }
}

void SortByPartialKey(absl::Span<BytesEntry> entries) {
  if (entries.size() < kFewEntries) {
    std::sort(entries.begin(), entries.end(), [](const BytesEntry& a, const BytesEntry& b) {
      if (a.partial_key != b.partial_key) return a.partial_key < b.partial_key;
      return std::less<const char*>()(a.record, b.record);
    });
  } else {
    VectorizedSort(reinterpret_cast<hwy::uint128_t*>(entries.data()), entries.size());
  }
}

}  // namespace cairn
