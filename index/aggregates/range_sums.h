#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"

namespace cairn {

// The exact sum and the number of the integers in a range, for SUM, COUNT and AVG. Nulls do not
// count.
struct IntegerSum {
  absl::int128 sum = 0;  // the caller checks whether it fits a narrower type
  uint64_t count = 0;

  bool operator==(const IntegerSum& other) const {
    return sum == other.sum && count == other.count;
  }
};

// Exact sums of integers over positions of an index's entries, at a cost that does not depend on
// the length of the range. There are sums of all entries before each block of 8 to 64 entries; the
// entries of the two end blocks are added. Immutable; thread-safe.
//
// Values are stored as differences from the lowest one in 1, 2, 4 or 8 bytes each, whichever is
// enough for all. With the sums that takes 1.25, 2.5, 5 or 10 bytes per entry, and 10% more if
// there are nulls. It takes next to nothing if all values are equal and none is null.
class RangeSums {
 public:
  // Indexes values[i] = the column at row_ids[i], on up to `threads` threads. The build temporarily
  // takes 8 bytes more per entry. Errors: InvalidArgument for a column that has no integers; those
  // of ColumnTable::Gather.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> Build(const ColumnTable& table,
                                                                size_t column,
                                                                absl::Span<const RowId> row_ids,
                                                                int threads);
  // Indexes values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> Build(const ColumnValues& values,
                                                                int threads);
  // Indexes only counts, for values of any type: every sum is 0.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> BuildCounts(
      const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads);
  static absl::StatusOr<std::unique_ptr<const RangeSums>> BuildCounts(const ColumnValues& values,
                                                                      int threads);
  virtual ~RangeSums() = default;

  // Sets sums[i] to that of positions [begin[i], end[i]), which is empty if begin[i] >= end[i]. All
  // spans have the same length; requires that ends be at most the number of entries. The reads of
  // many ranges in one call overlap.
  virtual void Sum(absl::Span<const Position> begin, absl::Span<const Position> end,
                   absl::Span<IntegerSum> sums) const = 0;
  IntegerSum Sum(Position begin, Position end) const {
    IntegerSum sum;
    Sum(absl::MakeConstSpan(&begin, 1), absl::MakeConstSpan(&end, 1), absl::MakeSpan(&sum, 1));
    return sum;
  }

  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace cairn
