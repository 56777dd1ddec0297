#include "cpu_fast/fast/compressed_pages.h"

#include <algorithm>
#include <limits>

#include "index/machine/parallel.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Groups of pages that one task compresses.
constexpr size_t kGroupGrain = 256;

template <typename Key>
absl::Span<const Key> PageKeys(absl::Span<const Key> keys, size_t page) {
  constexpr size_t kPageKeys = CompressedPagesView<Key>::kPageKeys;
  return keys.subspan(page * kPageKeys, kPageKeys);
}

// Log2 of the number of bytes (1, 2, 4 or 8) needed for values up to `greatest`.
uint64_t WidthLog2(uint64_t greatest) {
  return (greatest > UINT8_MAX ? 1 : 0) + (greatest > UINT16_MAX ? 1 : 0) +
         (greatest > UINT32_MAX ? 1 : 0);
}

// A page that is not full is padded with maximum deltas.
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

// Calls body(group, page) for each page; all pages of a group are handled by the same thread.
template <typename Key, typename Body>
void ForEachPage(size_t pages, Body body) {
  constexpr size_t kGroupPages = CompressedPagesView<Key>::kGroupPages;
  const size_t groups = (pages + kGroupPages - 1) / kGroupPages;
  const size_t grains = (groups + kGroupGrain - 1) / kGroupGrain;
  ParallelFor(Topology::Get().cores(), grains, [&](size_t grain) {
    const size_t end = std::min((grain + 1) * kGroupGrain * kGroupPages, pages);
    for (size_t page = grain * kGroupGrain * kGroupPages; page < end; ++page) {
      body(page / kGroupPages, page);
    }
  });
}

}  // namespace

template <typename Key>
CompressedPages<Key>::CompressedPages(absl::Span<const Key> keys, absl::Span<const RowId> row_ids) {
  view_.entries = keys.size();
  const size_t pages = view_.pages();
  if (pages == 0) return;
  minima_ = AlignedBuffer<Key>(pages);
  groups_ = AlignedBuffer<uint64_t>((pages + View::kGroupPages - 1) / View::kGroupPages);
  std::fill(groups_.begin(), groups_.end(), 0);
  ForEachPage<Key>(pages, [&](size_t group, size_t page) {
    const absl::Span<const Key> of_page = PageKeys(keys, page);
    minima_[page] = of_page.front();
    const uint64_t width_log2 = WidthLog2(of_page.back() - of_page.front());
    groups_[group] |= width_log2 << (2 * (page % View::kGroupPages));
  });
  view_.minima = minima_.data();
  view_.groups = groups_.data();
  view_.row_ids = row_ids.data();

  uint64_t unit = 0;  // in units of kPageKeys bytes; fits 32 bits: at most kMaxEntries / 32 pages
                      // of at most 8 units
  for (size_t group = 0; group < groups_.size(); ++group) {
    groups_[group] |= unit << 32;
    // In the last group, slots without a page count as pages of one byte per key.
    constexpr size_t kLast = View::kGroupPages - 1;
    unit =
        View::Unit(groups_[group], kLast) + (size_t{1} << View::WidthLog2(groups_[group], kLast));
  }
  deltas_ = AlignedBuffer<uint8_t>(unit * View::kPageKeys);
  view_.deltas = deltas_.data();
  ForEachPage<Key>(pages, [&](size_t, size_t page) {
    const CompressedPage to = view_.Page(page);
    WriteDeltas(to.width_log2, PageKeys(keys, page), deltas_.data() + (to.deltas - view_.deltas));
  });
}

template class CompressedPages<uint32_t>;
template class CompressedPages<uint64_t>;

}  // namespace cairn
