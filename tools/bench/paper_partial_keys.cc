#include "tools/bench/paper_partial_keys.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "cpu_fast/string_compare.h"
#include "index/parallel.h"
#include "index/prefetch.h"

namespace cairn::bench {
namespace {

constexpr size_t kGranuleBits = 4;
// Queries that go down together.
constexpr size_t kInFlight = 32;
constexpr double kMostFalsePositives = 0.0001;

// Less than 0, 0, or greater, like memcmp.
inline int Compare(const char* a, const char* b, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 8) {
    const size_t behind = i + 8 > bytes ? 8 * (i + 8 - bytes) : 0;  // bits that are not the key's
    const uint64_t x = LoadBigEndian(a + i) >> behind;
    const uint64_t y = LoadBigEndian(b + i) >> behind;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

inline void PrefetchKey(const char* key, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kCacheLineBytes) Prefetch(key + i);
  Prefetch(key + bytes - 1);
}

// ORs into `difference` the bits in which `count` keys, `stride` bytes apart, differ: of each 16
// bytes, an exclusive or and an or for every key.
void AddDifference(const char* keys, size_t count, size_t stride, size_t bytes,
                   uint8_t* difference) {
  for (size_t i = 0; i < bytes; i += 16) {
    const char* key = keys + i;
    __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
    __m128i differ = _mm_setzero_si128();
    for (size_t k = 1; k < count; ++k) {
      key += stride;
      const __m128i next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key));
      differ = _mm_or_si128(differ, _mm_xor_si128(before, next));
      before = next;
    }
    alignas(16) uint8_t differing[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(differing), differ);
    for (size_t b = 0; b < 16 && i + b < bytes; ++b) difference[i + b] |= differing[b];
  }
}

// The first granules, at most `most`, in which keys differ.
std::vector<size_t> Granules(const uint8_t* difference, size_t bytes, size_t most,
                             PaperPrefix prefix) {
  std::vector<size_t> granules;
  for (size_t g = 0; g < 2 * bytes && granules.size() < most; ++g) {
    const bool differs = (difference[g / 2] & (g % 2 == 0 ? 0xF0 : 0x0F)) != 0;
    const bool follows = prefix == PaperPrefix::kContiguous && !granules.empty();
    if (differs || follows) granules.push_back(g);
  }
  return granules;
}

// Where a window of so many bytes starts whose first granule is `granule`.
uint32_t WindowOffset(size_t granule, size_t window_bytes, size_t key_bytes) {
  const size_t last = key_bytes > window_bytes ? key_bytes - window_bytes : 0;
  return static_cast<uint32_t>(std::min(granule / 2, last));
}

// Adds to at[i] how many of the `count` entries from at[i] on are before query i, of `queries` that
// take each step together. before(i, p): whether entry p is; entries that are come first. Entry p
// is at `entries` + p * bytes.
template <typename Before>
__attribute__((always_inline)) inline void SearchTogether(size_t queries, size_t count, size_t* at,
                                                          const void* entries, size_t bytes,
                                                          Before before) {
  const auto* memory = static_cast<const char*>(entries);
  while (count > 1) {
    const size_t half = count / 2;
    count -= half;
    for (size_t i = 0; i < queries; ++i) {
      // No branch: it would be mispredicted every other time.
      at[i] += half & (size_t{0} - static_cast<size_t>(before(i, at[i] + half - 1)));
      if (count * bytes > kCacheLineBytes / 2) {
        Prefetch(memory + (at[i] + std::max<size_t>(count / 2, 1) - 1) * bytes);
      }
    }
  }
  for (size_t i = 0; i < queries; ++i) at[i] += static_cast<size_t>(before(i, at[i]));
}

}  // namespace

FixedKeys::FixedKeys(size_t key_bytes, size_t count)
    : bytes(key_bytes), size(count), data(pages() * kPaperPageKeys * bytes + 16) {
  std::memset(at(size), 0xFF, data.size() - size * bytes);
}

ShuffleWindow::ShuffleWindow(absl::Span<const size_t> granules, size_t key_bytes, size_t* next) {
  std::memset(control_, 0x80, sizeof(control_));
  if (granules.empty()) return;
  offset_ = WindowOffset(granules[*next], 16, key_bytes);
  for (; *next < granules.size() && granules[*next] / 2 - offset_ < 16; ++*next) {
    const size_t granule = granules[*next];
    const int move = (granule % 2 == 0 ? kHighToHigh : kLowToHigh) + static_cast<int>(*next % 2);
    control_[move][*next / 2] = static_cast<uint8_t>(granule / 2 - offset_);
  }
}

template <typename Partial>
inline Partial ShuffleWindow::Gather(const char* key) const {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key + offset_));
  const __m128i low_half = _mm_set1_epi8(0x0F);
  const __m128i high = _mm_andnot_si128(low_half, bytes);
  const __m128i low = _mm_and_si128(low_half, bytes);
  const auto* control = reinterpret_cast<const __m128i*>(control_);
  // No bit leaves its byte: the half it is shifted out of is 0.
  const __m128i made =
      _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(high, control[kHighToHigh]),
                                _mm_shuffle_epi8(_mm_srli_epi16(high, 4), control[kHighToLow])),
                   _mm_or_si128(_mm_shuffle_epi8(_mm_slli_epi16(low, 4), control[kLowToHigh]),
                                _mm_shuffle_epi8(low, control[kLowToLow])));
  // Its first byte is the most significant one.
  const uint64_t first = __builtin_bswap64(static_cast<uint64_t>(_mm_cvtsi128_si64(made)));
  if constexpr (sizeof(Partial) <= 8) {
    return static_cast<Partial>(first >> (64 - 8 * sizeof(Partial)));
  } else {
    const auto second = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(made, made)));
    return static_cast<Partial>(first) << 64 | __builtin_bswap64(second);
  }
}

PextWindow::PextWindow(absl::Span<const size_t> granules, size_t key_bytes, size_t* next) {
  if (granules.empty()) return;
  offset_ = WindowOffset(granules[*next], 8, key_bytes);
  for (; *next < granules.size() && granules[*next] / 2 - offset_ < 8; ++*next) {
    mask_ |= uint64_t{0xF} << (60 - kGranuleBits * (granules[*next] - 2 * offset_));
  }
  shift_ = static_cast<uint32_t>(kGranuleBits * (granules.size() - *next));
}

template <typename Partial>
inline Partial PextWindow::Gather(const char* key) const {
  return static_cast<Partial>(_pext_u64(LoadBigEndian(key + offset_), mask_)) << shift_;
}

template <typename Window, typename Partial>
PartialKeyExtractor<Window, Partial>::PartialKeyExtractor(absl::Span<const size_t> granules,
                                                          size_t key_bytes) {
  size_t next = 0;
  first_ = Window(granules, key_bytes, &next);
  while (next < granules.size()) rest_.push_back(Window(granules, key_bytes, &next));
}

// Queries that go down together.
template <typename Window>
struct PartialKeyPages<Window>::Group {
  size_t size;
  const char* query[kInFlight];
  size_t at[kInFlight];    // a leaf page, then the first position that the query may have
  size_t last[kInFlight];  // the end of those it may have
  uint64_t work;
};

template <typename Window>
PartialKeyPages<Window>::PartialKeyPages(const FixedKeys& keys, PaperPrefix prefix, int threads)
    : keys_(keys), extract_(keys.pages()), partial_keys_(keys.pages() * kPaperPageKeys) {
  alignas(16) uint8_t difference[kMaxKeyBytes] = {};
  std::mutex mutex;
  constexpr size_t kPagesPerItem = 64;
  ParallelFor(threads, (keys.pages() + kPagesPerItem - 1) / kPagesPerItem, [&](size_t item) {
    uint8_t seen[kMaxKeyBytes] = {};
    const size_t end = std::min((item + 1) * kPagesPerItem, keys.pages());
    for (size_t page = item * kPagesPerItem; page < end; ++page) BuildLeaf(page, prefix, seen);
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t b = 0; b < kMaxKeyBytes; ++b) difference[b] |= seen[b];
  });
  AddDifference(keys[0], keys.pages(), kPaperPageKeys * keys.bytes, keys.bytes, difference);
  BuildFirstPage<uint32_t>(difference, prefix, false) ||
      BuildFirstPage<uint64_t>(difference, prefix, false) ||
      BuildFirstPage<Wide>(difference, prefix, true);
}

template <typename Window>
void PartialKeyPages<Window>::BuildLeaf(size_t page, PaperPrefix prefix, uint8_t* difference) {
  const size_t begin = page * kPaperPageKeys;
  const size_t end = std::min(begin + kPaperPageKeys, keys_.size);
  uint8_t differs[kMaxKeyBytes] = {};
  AddDifference(keys_[begin], end - begin, keys_.bytes, keys_.bytes, differs);
  for (size_t b = 0; b < keys_.bytes; ++b) difference[b] |= differs[b];
  const PartialKeyExtractor<Window, uint32_t> extract(
      Granules(differs, keys_.bytes, 32 / kGranuleBits, prefix), keys_.bytes);
  for (size_t i = begin; i < end; ++i) partial_keys_[i] = extract(keys_[i]);
  std::fill(partial_keys_.data() + end, partial_keys_.data() + begin + kPaperPageKeys, UINT32_MAX);
  extract_[page] = extract;
}

template <typename Window>
template <typename Partial>
bool PartialKeyPages<Window>::BuildFirstPage(const uint8_t* difference, PaperPrefix prefix,
                                             bool force) {
  const size_t most = 8 * sizeof(Partial) / kGranuleBits;
  FirstPage<Partial> page{{Granules(difference, keys_.bytes, most, prefix), keys_.bytes},
                          AlignedBuffer<Partial>(keys_.pages())};
  size_t false_positives = 0;
  for (size_t i = 0; i < keys_.pages(); ++i) {
    page.keys[i] = page.extract(keys_[i * kPaperPageKeys]);
    if (i > 0 && page.keys[i - 1] == page.keys[i]) ++false_positives;
  }
  const double most_wrong = kMostFalsePositives * static_cast<double>(keys_.pages());
  if (!force && static_cast<double>(false_positives) >= most_wrong) return false;
  first_page_ = std::move(page);
  first_page_bits_ = static_cast<int>(8 * sizeof(Partial));
  return true;
}

template <typename Window>
double PartialKeyPages<Window>::false_positives() const {
  size_t pairs = 0, equal = 0;
  for (size_t i = 1; i < keys_.size; ++i) {
    if (i % kPaperPageKeys == 0) continue;
    ++pairs;
    equal += partial_keys_[i - 1] == partial_keys_[i] ? 1 : 0;
  }
  return static_cast<double>(equal) / static_cast<double>(std::max<size_t>(pairs, 1));
}

template <typename Window>
uint64_t PartialKeyPages<Window>::memory_bytes() const {
  return partial_keys_.size() * sizeof(uint32_t) + extract_.size() * sizeof(extract_[0]) +
         keys_.pages() * static_cast<size_t>(first_page_bits_) / 8;
}

template <typename Window>
template <typename Partial>
void PartialKeyPages<Window>::FindLeaves(const FirstPage<Partial>& page, Group* group) const {
  Partial wanted[kInFlight];
  for (size_t i = 0; i < group->size; ++i) {
    wanted[i] = page.extract(group->query[i]);
    group->at[i] = 0;
  }
  const Partial* keys = page.keys.data();
  SearchTogether(group->size, page.keys.size(), group->at, keys, sizeof(*keys),
                 [&](size_t i, size_t p) { return keys[p] <= wanted[i]; });
  for (size_t i = 0; i < group->size; ++i) {
    size_t& at = group->at[i];
    if (at > 0 && keys[at - 1] == wanted[i]) {  // the full keys tell
      const auto first = std::lower_bound(keys, keys + at, wanted[i]) - keys;
      at = LeafAmong(group->query[i], static_cast<size_t>(first), at, &group->work);
    } else if (at > 0) {
      --at;
    }
    Prefetch(&extract_[at]);
    Prefetch(reinterpret_cast<const char*>(&extract_[at] + 1) - 1);
    Prefetch(&partial_keys_[at * kPaperPageKeys + kPaperPageKeys / 2 - 1]);
  }
}

template <typename Window>
size_t PartialKeyPages<Window>::LeafAmong(const char* query, size_t first, size_t last,
                                          uint64_t* work) const {
  while (first < last) {
    const size_t middle = first + (last - first) / 2;
    ++*work;
    if (Compare(keys_[middle * kPaperPageKeys], query, keys_.bytes) <= 0) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first == 0 ? 0 : first - 1;
}

template <typename Window>
void PartialKeyPages<Window>::SearchLeaves(Group* group) const {
  uint32_t wanted[kInFlight];
  size_t end[kInFlight];
  for (size_t i = 0; i < group->size; ++i) {
    const size_t page = group->at[i];
    wanted[i] = extract_[page](group->query[i]);
    group->at[i] = page * kPaperPageKeys;
    end[i] = std::min(group->at[i] + kPaperPageKeys, keys_.size);
  }
  const uint32_t* keys = partial_keys_.data();
  SearchTogether(group->size, kPaperPageKeys, group->at, keys, sizeof(*keys),
                 [&](size_t i, size_t p) { return keys[p] < wanted[i]; });
  for (size_t i = 0; i < group->size; ++i) {
    const size_t at = std::min(group->at[i], end[i]);
    PrefetchKey(keys_[at], keys_.bytes);
    size_t last = std::min(at + 1, keys_.size);
    if (last < end[i] && keys[last] == wanted[i]) {
      last = static_cast<size_t>(std::upper_bound(keys + last, keys + end[i], wanted[i]) - keys);
    }
    group->at[i] = at;
    group->last[i] = last;
  }
}

template <typename Window>
bool PartialKeyPages<Window>::Narrow(const char* query, size_t* first, size_t last,
                                     uint64_t* work) const {
  while (*first < last) {
    const size_t middle = *first + (last - *first) / 2;
    ++*work;
    const int order = Compare(keys_[middle], query, keys_.bytes);
    if (order < 0) {
      *first = middle + 1;
    } else {
      last = middle;
      if (order == 0) *first = middle;
      if (order == 0) return true;
    }
  }
  return false;
}

template <typename Window>
size_t PartialKeyPages<Window>::Resolve(const char* query, size_t first, size_t last,
                                        uint64_t* work) const {
  size_t begin = first, end = last;  // what has been searched
  if (Narrow(query, &first, end, work)) return first;
  for (size_t step = 1; first == begin && begin > 0; step *= 2) {
    last = begin;
    first = begin -= std::min(step, begin);
    if (Narrow(query, &first, last, work)) return first;
  }
  for (size_t step = 1; first == end && end < keys_.size; step *= 2) {
    end += std::min(step, keys_.size - end);
    if (Narrow(query, &first, end, work)) return first;
  }
  return first;
}

template <typename Window>
uint64_t PartialKeyPages<Window>::LowerBound(const FixedKeys& queries, size_t first, size_t count,
                                             Position* positions) const {
  Group group;
  group.work = 0;
  for (size_t done = 0; done < count; done += group.size) {
    group.size = std::min(kInFlight, count - done);
    for (size_t i = 0; i < group.size; ++i) group.query[i] = queries[first + done + i];
    std::visit([&](const auto& page) { FindLeaves(page, &group); }, first_page_);
    SearchLeaves(&group);
    for (size_t i = 0; i < group.size; ++i) {
      positions[done + i] =
          static_cast<Position>(Resolve(group.query[i], group.at[i], group.last[i], &group.work));
    }
  }
  return group.work;
}

template class PartialKeyPages<ShuffleWindow>;
template class PartialKeyPages<PextWindow>;

FullKeyPages::FullKeyPages(const FixedKeys& keys)
    : keys_(keys), first_page_(keys.bytes, keys.pages()) {
  for (size_t i = 0; i < keys.pages(); ++i) {
    std::memcpy(first_page_.at(i), keys[i * kPaperPageKeys], keys.bytes);
  }
}

void FullKeyPages::LowerBound(const FixedKeys& queries, size_t first, size_t count,
                              Position* positions) const {
  const size_t bytes = keys_.bytes;
  size_t at[kInFlight];
  for (size_t done = 0; done < count; done += kInFlight) {
    const size_t size = std::min(kInFlight, count - done);
    const char* query = queries[first + done];
    std::fill_n(at, size, 0);
    SearchTogether(size, first_page_.size, at, first_page_[0], bytes, [&](size_t i, size_t p) {
      return Compare(first_page_[p], query + i * bytes, bytes) <= 0;
    });
    for (size_t i = 0; i < size; ++i) {
      at[i] = (at[i] == 0 ? 0 : at[i] - 1) * kPaperPageKeys;
      Prefetch(keys_[at[i] + kPaperPageKeys / 2 - 1]);
    }
    SearchTogether(size, kPaperPageKeys, at, keys_[0], bytes, [&](size_t i, size_t p) {
      return Compare(keys_[p], query + i * bytes, bytes) < 0;
    });
    for (size_t i = 0; i < size; ++i) {
      positions[done + i] = static_cast<Position>(std::min(at[i], keys_.size));
    }
  }
}

}  // namespace cairn::bench
#endif
