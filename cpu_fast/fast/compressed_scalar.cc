#include "cpu_fast/fast/compressed_scalar.h"

#include <algorithm>
#include <cstddef>

namespace cairn {
namespace {

template <typename Delta, typename Key>
size_t CountLess(const uint8_t* deltas, Key difference) {
  const auto* delta = reinterpret_cast<const Delta*>(deltas);
  size_t less = 0;
  for (size_t i = 0; i < CompressedPagesView<Key>::kPageKeys; ++i) less += delta[i] < difference;
  return less;
}

// `below` is the number of pages whose minimum is less than the query.
template <typename Key>
size_t LowerBoundOf(const CompressedPagesView<Key>& pages, size_t below, Key query) {
  if (below == 0) return 0;
  const size_t page = below - 1;
  const auto [deltas, width_log2] = pages.Page(page);
  const Key difference = query - pages.minima[page];
  size_t less = 0;
  switch (width_log2) {
    case 0:
      less = CountLess<uint8_t>(deltas, difference);
      break;
    case 1:
      less = CountLess<uint16_t>(deltas, difference);
      break;
    case 2:
      less = CountLess<uint32_t>(deltas, difference);
      break;
    default:
      less = CountLess<uint64_t>(deltas, difference);
  }
  return std::min(page * pages.kPageKeys + less, pages.entries);
}

template <typename Key>
Key KeyAt(const CompressedPagesView<Key>& pages, size_t entry) {
  const size_t page = entry / pages.kPageKeys;
  return pages.minima[page] + static_cast<Key>(pages.Page(page).Delta(entry % pages.kPageKeys));
}

template <typename Key>
void LowerBound(const CompressedPagesView<Key>& pages, absl::Span<const Key> queries,
                uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    out[i] = static_cast<Position>(LowerBoundOf(pages, out[i], queries[i]));
  }
}

template <typename Key>
void FindFirst(const CompressedPagesView<Key>& pages, absl::Span<const Key> queries,
               uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    const size_t p = LowerBoundOf(pages, out[i], queries[i]);
    const bool found = p < pages.entries && KeyAt(pages, p) == queries[i];
    out[i] = found ? pages.row_ids[p] : kNoRow;
  }
}

}  // namespace

template <typename Key>
const CompressedSearch<Key>& ScalarCompressedSearch() {
  static constexpr CompressedSearch<Key> kSearches = {LowerBound<Key>, FindFirst<Key>};
  return kSearches;
}

template const CompressedSearch<uint32_t>& ScalarCompressedSearch<uint32_t>();
template const CompressedSearch<uint64_t>& ScalarCompressedSearch<uint64_t>();

}  // namespace cairn
