#include "cpu_fast/packed/packed_search_scalar.h"

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

enum class Output { kPosition, kFirstRow };

template <typename Key, int kBits, Output kOutput>
uint32_t SearchLeaf(const PackedView<Key>& view, size_t leaf, Key query) {
  using Layout = LeafLayout<kBits>;
  using Low = typename Layout::Low;
  Low keys[Layout::kEntries];
  const auto low = static_cast<Low>(query);
  const size_t last = std::min(leaf + PackedSearch<Key>::kMaxWalked, view.leaf_count - 1);
  for (;; ++leaf) {
    std::memcpy(keys, view.leaves[leaf].bytes, sizeof(keys));
    // Cells that are not exact may return a leaf before the right one.
    const bool before = kBits == sizeof(Key) * 8 && keys[Layout::kEntries - 1] < low;
    if (!before || leaf == last) break;
  }
  const unsigned char* bytes = view.leaves[leaf].bytes;
  const size_t at = static_cast<size_t>(std::lower_bound(std::begin(keys), std::end(keys), low) -
                                        std::begin(keys));
  if constexpr (kOutput == Output::kPosition) {
    Position first;
    std::memcpy(&first, bytes + Layout::kPositionOffset, sizeof(first));
    return first + static_cast<Position>(at);
  } else {
    if (at == Layout::kEntries || keys[at] != low) return kNoRow;
    RowId row;
    std::memcpy(&row, bytes + Layout::kRowsOffset + at * sizeof(row), sizeof(row));
    return row;
  }
}

template <typename Key, int kBits, Output kOutput>
void SearchLeaves(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    out[i] = SearchLeaf<Key, kBits, kOutput>(view, out[i], queries[i]);
  }
}

template <typename Key, int kBits, Output kOutput>
void SearchCells(const PackedView<Key>& view, absl::Span<const Key> queries, uint32_t* out) {
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto place = PlaceAmong(view.groups, view.bounds, queries[i]);
    const Cell& cell = view.cells[place.cell];
    const auto* at =
        std::lower_bound(std::begin(cell.separators), std::end(cell.separators), place.step);
    const size_t leaf = cell.first + static_cast<size_t>(at - std::begin(cell.separators));
    out[i] = SearchLeaf<Key, kBits, kOutput>(view, std::min(leaf, view.leaf_count - 1), queries[i]);
  }
}

template <typename Key, int kBits>
const PackedSearch<Key>& Searches() {
  static constexpr PackedSearch<Key> kSearches = {
      SearchCells<Key, kBits, Output::kPosition>,
      SearchCells<Key, kBits, Output::kFirstRow>,
      SearchLeaves<Key, kBits, Output::kPosition>,
      SearchLeaves<Key, kBits, Output::kFirstRow>,
  };
  return kSearches;
}

}  // namespace

template <typename Key>
const PackedSearch<Key>& ScalarPackedSearch(int bits) {
  if (bits == 16) return Searches<Key, 16>();
  if (bits == 32) return Searches<Key, 32>();
  return Searches<Key, static_cast<int>(sizeof(Key)) * 8>();
}

template const PackedSearch<uint32_t>& ScalarPackedSearch(int bits);
template const PackedSearch<uint64_t>& ScalarPackedSearch(int bits);

}  // namespace cairn
