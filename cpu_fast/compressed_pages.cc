#include "cpu_fast/compressed_pages.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>

namespace cairn {
namespace {

// Pages that one task compresses.
constexpr size_t kBuildGrain = 1024;

template <typename Key>
absl::Span<const Key> PageKeys(absl::Span<const Key> keys, size_t page) {
  constexpr size_t kPageKeys = CompressedPagesView<Key>::kPageKeys;
  return keys.subspan(page * kPageKeys, kPageKeys);
}

// The log2 of the bytes that a number takes, of 1, 2, 4 or 8.
uint32_t WidthLog2(uint64_t greatest) {
  return (greatest > UINT8_MAX ? 1 : 0) + (greatest > UINT16_MAX ? 1 : 0) +
         (greatest > UINT32_MAX ? 1 : 0);
}

// A page that is not full goes on with deltas as great as there are.
template <typename Delta, typename Key>
void WriteDeltas(absl::Span<const Key> keys, uint8_t* to) {
  auto* deltas = reinterpret_cast<Delta*>(to);
  for (size_t i = 0; i < keys.size(); ++i) deltas[i] = static_cast<Delta>(keys[i] - keys[0]);
  std::fill(deltas + keys.size(), deltas + CompressedPagesView<Key>::kPageKeys,
            std::numeric_limits<Delta>::max());
}

template <typename Key>
void WriteDeltas(int width_log2, absl::Span<const Key> keys, uint8_t* to) {
  switch (width_log2) {
    case 0:
      return WriteDeltas<uint8_t>(keys, to);
    case 1:
      return WriteDeltas<uint16_t>(keys, to);
    case 2:
      return WriteDeltas<uint32_t>(keys, to);
    default:
      return WriteDeltas<uint64_t>(keys, to);
  }
}

template <typename Body>
void ForEachPage(size_t pages, Body body) {
  tbb::parallel_for(tbb::blocked_range<size_t>(0, pages, kBuildGrain),
                    [&](const tbb::blocked_range<size_t>& range) {
                      for (size_t page = range.begin(); page < range.end(); ++page) body(page);
                    });
}

}  // namespace

template <typename Key>
CompressedPages<Key>::CompressedPages(absl::Span<const Key> keys, absl::Span<const RowId> row_ids) {
  view_.entries = keys.size();
  const size_t pages = view_.pages();
  if (pages == 0) return;
  minima_ = AlignedBuffer<Key>(pages);
  refs_ = AlignedBuffer<uint32_t>(pages);
  ForEachPage(pages, [&](size_t page) {
    const absl::Span<const Key> of_page = PageKeys(keys, page);
    minima_[page] = of_page.front();
    refs_[page] = WidthLog2(of_page.back() - of_page.front());
  });

  // A page of w-byte deltas takes w cache lines.
  static_assert(View::kPageKeys == kCacheLineBytes);
  uint32_t line = 0;  // below 2^30, as references hold: kMaxEntries / 64 pages of at most 8
  for (uint32_t& ref : refs_) {
    const uint32_t width_log2 = ref;
    ref = line << 2 | width_log2;
    line += 1u << width_log2;
  }
  deltas_ = AlignedBuffer<uint8_t>(size_t{line} * kCacheLineBytes);
  view_.minima = minima_.data();
  view_.refs = refs_.data();
  view_.deltas = deltas_.data();
  view_.row_ids = row_ids.data();
  ForEachPage(pages, [&](size_t page) {
    const uint32_t ref = refs_[page];
    uint8_t* to = deltas_.data() + (view_.Deltas(ref) - view_.deltas);
    WriteDeltas(View::WidthLog2(ref), PageKeys(keys, page), to);
  });
}

template class CompressedPages<uint32_t>;
template class CompressedPages<uint64_t>;

}  // namespace cairn
