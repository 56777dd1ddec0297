#include "index/sort/bucket_sort.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"

namespace cairn {
namespace {

// For fewer words, the preparations of a vectorized sort cost more than it saves.
constexpr size_t kFewWords = 32;

// Pairs of words, ordered by the leading one, then by the other. Up to kFewPairs are sorted by
// insertion.
constexpr size_t kFewPairs = 24;
// The average number of pairs per digit, if digits are evenly distributed: about half of this to
// all of it.
constexpr size_t kPairsADigit = 8;
// kMaxPairsByDigits pairs and their copies fit a core's own cache. The memory budget does not
// include copies of more.
constexpr size_t kMaxPairsByDigits = size_t{1} << 15;

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

template <typename Pair>
void VectorizedSort(absl::Span<Pair> pairs) {
  VectorizedSort(reinterpret_cast<hwy::uint128_t*>(pairs.data()), pairs.size());
}

uint64_t Other(const Entry64& pair) {
  return pair.low;
}
uint64_t Other(const BytesEntry& pair) {
  return reinterpret_cast<uintptr_t>(pair.record);
}

template <typename Pair>
bool Less(const Pair& a, const Pair& b) {
  return a.leading() < b.leading() || (a.leading() == b.leading() && Other(a) < Other(b));
}

template <typename Pair>
void InsertionSort(absl::Span<Pair> pairs) {
  for (size_t i = 1; i < pairs.size(); ++i) {
    const Pair pair = pairs[i];
    size_t to = i;
    for (; to > 0 && Less(pair, pairs[to - 1]); --to) pairs[to] = pairs[to - 1];
    pairs[to] = pair;
  }
}

// A digit of words that fill the range from `least` on.
struct RangeDigit {
  uint64_t least;
  int shift;

  size_t operator()(uint64_t word) const { return (word - least) >> shift; }
};

// A digit of words that differ in some bits only, as text does in a few of each byte: the leading
// ones of these bits, moved together.
class ScatteredDigit {
 public:
  // Uses at most `bits` of the bits set in `differing`.
  ScatteredDigit(uint64_t differing, int bits) {
    for (Stretch& stretch : stretches_) {
      if (differing == 0 || bits_ == bits) break;
      const int end = static_cast<int>(std::bit_width(differing));
      const int ones = std::min(std::countl_one(differing << (64 - end)), bits - bits_);
      stretch = {end - ones, 0, (uint64_t{1} << ones) - 1};
      bits_ += ones;
      differing &= ~(stretch.mask << stretch.from);
    }
    int to = bits_;
    for (Stretch& stretch : stretches_) stretch.to = to -= std::popcount(stretch.mask);
  }

  // Whether the bits are one stretch.
  bool adjacent() const { return stretches_[1].mask == 0; }
  size_t values() const { return size_t{1} << bits_; }
  size_t operator()(uint64_t word) const {
    size_t digit = 0;
    for (const Stretch& s : stretches_) digit |= (word >> s.from & s.mask) << s.to;
    return digit;
  }

 private:
  struct Stretch {
    int from = 0;  // of words
    int to = 0;    // of digits
    uint64_t mask = 0;
  };
  Stretch stretches_[4];
  int bits_ = 0;
};

template <typename Pair>
void SortByDigits(absl::Span<Pair> pairs, Pair* scratch);

// One pass of a radix sort, by a digit that has `values`, then each value's pairs.
template <typename Pair, typename Digit>
void SortByDigit(absl::Span<Pair> pairs, Pair* scratch, size_t values, Digit digit) {
  absl::FixedArray<uint32_t, 256> ends(values, 0);
  for (const Pair& pair : pairs) ++ends[digit(pair.leading())];
  uint32_t begin = 0;
  for (uint32_t& end : ends) begin += std::exchange(end, begin);
  std::copy(pairs.begin(), pairs.end(), scratch);
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[ends[digit(scratch[i].leading())]++] = scratch[i];
  }
  begin = 0;
  for (const uint32_t end : ends) {
    const absl::Span<Pair> equal = pairs.subspan(begin, end - begin);
    if (equal.size() > pairs.size() / 2) {
      VectorizedSort(equal);
    } else if (equal.size() > 1) {
      SortByDigits(equal, scratch);
    }
    begin = end;
  }
}

// A radix sort from the leading digit on. A digit is wide enough that each of its values has only a
// few pairs, which are sorted by insertion: a third of the time of a vectorized quicksort of
// 128-bit numbers. If most pairs share a value, as with clustered keys, the vectorized sort is used
// for them, so that no distribution takes much longer than with that sort. `scratch` has room for
// all pairs.
template <typename Pair>
void SortByDigits(absl::Span<Pair> pairs, Pair* scratch) {
  if (pairs.size() <= kFewPairs) return InsertionSort(pairs);
  uint64_t least = UINT64_MAX, most = 0, all = UINT64_MAX, any = 0;
  for (const Pair& pair : pairs) {
    least = std::min(least, pair.leading());
    most = std::max(most, pair.leading());
    all &= pair.leading();
    any |= pair.leading();
  }
  if (least == most) {  // usually sorted already, since rows come in order
    if (!std::is_sorted(pairs.begin(), pairs.end(), Less<Pair>)) VectorizedSort(pairs);
    return;
  }
  const int bits = static_cast<int>(std::bit_width(pairs.size() / kPairsADigit));
  if (const ScatteredDigit digit(all ^ any, bits); !digit.adjacent()) {
    SortByDigit(pairs, scratch, digit.values(), digit);
    return;
  }
  const uint64_t range = most - least;
  const RangeDigit digit{least, std::max(0, static_cast<int>(std::bit_width(range)) - bits)};
  SortByDigit(pairs, scratch, digit(most) + 1, digit);
}

template <typename Pair>
void SortPairs(absl::Span<Pair> pairs) {
  if (pairs.size() <= kFewPairs) return InsertionSort(pairs);
  if (pairs.size() > kMaxPairsByDigits) return VectorizedSort(pairs);
  thread_local std::vector<Pair> scratch;
  if (scratch.size() < pairs.size()) scratch.resize(pairs.size());
  SortByDigits(pairs, scratch.data());
}

}  // namespace

void SortBucket(absl::Span<Entry32> entries) {
  if (entries.size() < kFewWords) {
    std::sort(entries.begin(), entries.end());
  } else {
    VectorizedSort(&entries[0].word, entries.size());
  }
}

void SortBucket(absl::Span<Entry64> entries) {
  SortPairs(entries);
}

void SortByPartialKey(absl::Span<BytesEntry> entries) {
  SortPairs(entries);
}

}  // namespace cairn
