#if defined(__x86_64__)
#include "tools/bench/papers/paper_partial_keys.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/strings/string_compare.h"

namespace cairn::bench {
namespace {

constexpr size_t kGranuleBits = 4;
constexpr double kMaxFalsePositives = 0.0001;

inline void PrefetchKey(const char* key, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kCacheLineBytes) Prefetch(key + i);
  Prefetch(key + bytes - 1);
}

// ORs into `difference` the bits in which `count` keys, `stride` bytes apart, differ: one XOR and
// one OR per key for each 16 bytes.
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

// The offset of a window of `window_bytes` bytes whose first granule is `granule`.
uint32_t WindowOffset(size_t granule, size_t window_bytes, size_t key_bytes) {
  const size_t last = key_bytes > window_bytes ? key_bytes - window_bytes : 0;
  return static_cast<uint32_t>(std::min(granule / 2, last));
}

}  // namespace

FixedKeys::FixedKeys(size_t key_bytes, size_t count)
    : bytes(key_bytes), size(count), data(size * bytes + 16) {}

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
  // No bit leaves its byte, since the half from which it is shifted is 0.
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
  const char* query[kPaperInFlight];
  size_t page[kPaperInFlight];      // a leaf page
  size_t rank[kPaperInFlight];      // in it, of the first partial key that is not less
  uint32_t wanted[kPaperInFlight];  // the query's partial key there
  uint64_t work;
};

template <typename Window>
PartialKeyPages<Window>::PartialKeyPages(const FixedKeys& keys, PaperPrefix prefix, int threads)
    : keys_(keys),
      extract_(keys.pages()),
      layout_(kPaperPageKeys, sizeof(uint32_t)),
      slots_(keys.pages() * layout_.slots()) {
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
  uint32_t* slots = slots_.data() + page * layout_.slots();
  for (size_t i = 0; i < kPaperPageKeys; ++i) {
    slots[layout_.SlotOf(i)] = begin + i < end ? extract(keys_[begin + i]) : UINT32_MAX;
  }
  extract_[page] = extract;
}

template <typename Window>
template <typename Partial>
bool PartialKeyPages<Window>::BuildFirstPage(const uint8_t* difference, PaperPrefix prefix,
                                             bool force) {
  const size_t most = 8 * sizeof(Partial) / kGranuleBits;
  FirstPage<Partial> page{{Granules(difference, keys_.bytes, most, prefix), keys_.bytes},
                          PaperPageLayout(keys_.pages(), sizeof(Partial)),
                          {}};
  page.slots = AlignedBuffer<Partial>(page.layout.slots());
  std::fill_n(page.slots.data(), page.slots.size(), ~Partial{0});
  size_t false_positives = 0;
  for (size_t i = 0; i < keys_.pages(); ++i) {
    Partial& slot = page.slots[page.layout.SlotOf(i)];
    slot = page.extract(keys_[i * kPaperPageKeys]);
    if (i > 0 && page.slots[page.layout.SlotOf(i - 1)] == slot) ++false_positives;
  }
  const double max_wrong = kMaxFalsePositives * static_cast<double>(keys_.pages());
  if (!force && static_cast<double>(false_positives) >= max_wrong) return false;
  first_page_ = std::move(page);
  first_page_bits_ = static_cast<int>(8 * sizeof(Partial));
  return true;
}

template <typename Window>
double PartialKeyPages<Window>::false_positives() const {
  size_t pairs = 0, equal = 0;
  for (size_t i = 1; i < keys_.size; ++i) {
    const size_t rank = i % kPaperPageKeys;
    if (rank == 0) continue;
    ++pairs;
    const uint32_t* slots = slots_.data() + i / kPaperPageKeys * layout_.slots();
    equal += slots[layout_.SlotOf(rank - 1)] == slots[layout_.SlotOf(rank)] ? 1 : 0;
  }
  return static_cast<double>(equal) / static_cast<double>(std::max<size_t>(pairs, 1));
}

template <typename Window>
uint64_t PartialKeyPages<Window>::memory_bytes() const {
  return slots_.size() * sizeof(uint32_t) + extract_.size() * sizeof(extract_[0]) +
         std::visit([](const auto& p) { return p.slots.size() * sizeof(p.slots[0]); }, first_page_);
}

template <typename Window>
template <typename Partial>
void PartialKeyPages<Window>::FindLeaves(const FirstPage<Partial>& page, Group* group) const {
  Partial wanted[kPaperInFlight];
  for (size_t i = 0; i < group->size; ++i) wanted[i] = page.extract(group->query[i]);
  const Partial* slots = page.slots.data();
  page.layout.Search(
      group->size, group->page, [&](size_t i, size_t slot) { return slots[slot] <= wanted[i]; },
      [&](size_t, size_t slot) { Prefetch(slots + slot); });
  for (size_t i = 0; i < group->size; ++i) {
    size_t& at = group->page[i];
    at = std::min(at, keys_.pages());
    if (at > 0 && slots[page.layout.SlotOf(at - 1)] == wanted[i]) {  // the full keys decide
      size_t first = 0;
      page.layout.Search(
          1, &first, [&](size_t, size_t slot) { return slots[slot] < wanted[i]; },
          [](size_t, size_t) {});
      at = LeafAmong(group->query[i], first, at, &group->work);
    } else if (at > 0) {
      --at;
    }
    Prefetch(&extract_[at]);
    Prefetch(reinterpret_cast<const char*>(&extract_[at] + 1) - 1);
    Prefetch(slots_.data() + at * layout_.slots());
  }
}

template <typename Window>
size_t PartialKeyPages<Window>::LeafAmong(const char* query, size_t first, size_t last,
                                          uint64_t* work) const {
  while (first < last) {
    const size_t middle = first + (last - first) / 2;
    ++*work;
    if (ComparePaperKeys(keys_[middle * kPaperPageKeys], query, keys_.bytes) <= 0) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first == 0 ? 0 : first - 1;
}

template <typename Window>
void PartialKeyPages<Window>::SearchLeaves(Group* group) const {
  const uint32_t* slots[kPaperInFlight];
  for (size_t i = 0; i < group->size; ++i) {
    group->wanted[i] = extract_[group->page[i]](group->query[i]);
    slots[i] = slots_.data() + group->page[i] * layout_.slots();
  }
  layout_.Search(
      group->size, group->rank,
      [&](size_t i, size_t slot) { return slots[i][slot] < group->wanted[i]; },
      [&](size_t i, size_t slot) { Prefetch(slots[i] + slot); });
  for (size_t i = 0; i < group->size; ++i) {
    PrefetchKey(keys_[group->page[i] * kPaperPageKeys + group->rank[i]], keys_.bytes);
  }
}

template <typename Window>
bool PartialKeyPages<Window>::Narrow(const char* query, size_t* first, size_t last,
                                     uint64_t* work) const {
  while (*first < last) {
    const size_t middle = *first + (last - *first) / 2;
    ++*work;
    const int order = ComparePaperKeys(keys_[middle], query, keys_.bytes);
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
size_t PartialKeyPages<Window>::Resolve(size_t i, Group* group) const {
  const char* query = group->query[i];
  uint64_t* work = &group->work;
  const size_t page = group->page[i] * kPaperPageKeys;
  size_t begin = std::min(page + group->rank[i], keys_.size), first = begin;
  size_t end = std::min(first + 1, keys_.size);
  if (Narrow(query, &first, end, work)) return first;
  if (first == end && group->wanted[i] < UINT32_MAX) {  // one of the next with its partial key?
    size_t rank = 0;
    const uint32_t* slots = slots_.data() + group->page[i] * layout_.slots();
    layout_.Search(
        1, &rank, [&](size_t, size_t slot) { return slots[slot] <= group->wanted[i]; },
        [](size_t, size_t) {});
    end = std::max(end, std::min(page + rank, keys_.size));
    if (Narrow(query, &first, end, work)) return first;
  }
  // The query is absent, or the page lacks some equal partial keys: search ever wider ranges.
  for (size_t step = 1; first == begin && begin > 0; step *= 2) {
    const size_t last = begin;
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
    group.size = std::min(kPaperInFlight, count - done);
    for (size_t i = 0; i < group.size; ++i) group.query[i] = queries[first + done + i];
    std::visit([&](const auto& page) { FindLeaves(page, &group); }, first_page_);
    SearchLeaves(&group);
    for (size_t i = 0; i < group.size; ++i) {
      positions[done + i] = static_cast<Position>(Resolve(i, &group));
    }
  }
  return group.work;
}

template class PartialKeyPages<ShuffleWindow>;
template class PartialKeyPages<PextWindow>;

}  // namespace cairn::bench
#endif
