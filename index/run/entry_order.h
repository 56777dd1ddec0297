#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Whether entries are in the order that a run promises, (key, row id) strictly ascending, and what
// else one pass over them tells.
namespace cairn {

// Statistics of adjacent entries of a run.
struct EntryOrder {
  bool ascends = true;    // every entry follows the one before it
  uint64_t distinct = 0;  // entries whose key is above the one before; the first one counts
  RowId highest_row = 0;  // of all

  void Join(const EntryOrder& other) {
    ascends &= other.ascends;
    distinct += other.distinct;
    highest_row = std::max(highest_row, other.highest_row);
  }
};

// Entries [first, last) of a column, each beside the one before it; entry 0 has none. `keys[i]` is
// key i, an integer or a std::string_view. Requires first < last.
template <typename Keys>
EntryOrder OrderOf(const Keys& keys, absl::Span<const RowId> row_ids, size_t first, size_t last) {
  using Key = std::decay_t<decltype(keys[0])>;
  EntryOrder order;
  if (first == 0) {
    order.distinct = 1;
    order.highest_row = row_ids[0];
    first = 1;
  }
  if constexpr (std::is_integral_v<Key>) {
    // Without a branch, so that numbers go through vector registers.
    for (size_t i = first; i < last; ++i) {
      const bool above = keys[i - 1] < keys[i];
      const bool same = keys[i - 1] == keys[i];
      order.distinct += above;
      order.ascends &= above | (same & (row_ids[i - 1] < row_ids[i]));
      order.highest_row = std::max(order.highest_row, row_ids[i]);
    }
  } else {
    Key before = keys[first - 1];
    for (size_t i = first; i < last; ++i) {
      const Key key = keys[i];
      const int compared = before.compare(key);
      order.distinct += compared < 0;
      order.ascends &= compared < 0 || (compared == 0 && row_ids[i - 1] < row_ids[i]);
      order.highest_row = std::max(order.highest_row, row_ids[i]);
      before = key;
    }
  }
  return order;
}

// That of a whole run, on up to `threads` threads. Requires that the offsets of keys of bytes
// ascend. Throws std::bad_alloc.
EntryOrder OrderOf(const SortedRun& run, int threads);

// The first entry that does not follow the one before it; none where all do.
std::optional<size_t> FirstOutOfOrder(const SortedRun& run);

// The first offset that is below the one before it, on up to `threads` threads. Throws
// std::bad_alloc.
template <typename Offset>
std::optional<size_t> FirstDescent(absl::Span<const Offset> offsets, int threads);

}  // namespace cairn
