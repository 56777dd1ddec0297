#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Checks that entries have the order that a run requires: strictly ascending (key, row id). The
// same pass computes some statistics.
namespace cairn {

// Statistics of adjacent entries of a run.
struct EntryOrder {
  bool ascends = true;    // every entry is greater than the one before it
  uint64_t distinct = 0;  // the number of distinct keys, if `ascends`
  RowId highest_row = 0;  // among all entries

  void Join(const EntryOrder& other) {
    ascends &= other.ascends;
    distinct += other.distinct;
    highest_row = std::max(highest_row, other.highest_row);
  }
};

// Compares each of the entries [first, last) of a column with the entry before it, if there is one.
// `keys[i]` is key i, an integer or a std::string_view. Requires first < last.
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
    // Without branches, so that numbers are compared by vector instructions.
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

// Checks a whole run, on up to `threads` threads. If the keys are bytes, their offsets must ascend.
// Throws std::bad_alloc.
EntryOrder OrderOf(const SortedRun& run, int threads);

// The first entry that is not greater than the one before it; nothing if there is none.
std::optional<size_t> FirstOutOfOrder(const SortedRun& run);

// The first offset that is lower than the one before it, on up to `threads` threads. Throws
// std::bad_alloc.
// std::bad_alloc.
template <typename Offset>
std::optional<size_t> FirstDescent(absl::Span<const Offset> offsets, int threads);

}  // namespace cairn
