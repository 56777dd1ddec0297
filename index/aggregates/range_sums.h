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

// The sum of the integers in a range, exact, and how many there are: SUM, COUNT and, by their
// quotient, AVG. Nulls do not count.
struct IntegerSum {
  absl::int128 sum = 0;  // whether it fits a narrower type is the caller's to decide
  uint64_t count = 0;

  bool operator==(const IntegerSum& other) const {
    return sum == other.sum && count == other.count;
  }
};

// Exact sums of integers over positions of an index's entries, at a cost that does not depend on
// how many they are: sums before each block of 8 to 64 entries, and the entries up to the range's
// ends. Immutable; thread-safe.
//
// Values are kept as differences from the least one in 1, 2, 4 or 8 bytes each, whichever holds
// them all. With the sums that takes 1.25, 2.5, 5 or 10 bytes an entry, a tenth more where some
// are null, and next to nothing where all are equal and none is null.
class RangeSums {
 public:
  // Of values[i] = the column at row_ids[i], on up to `threads` threads; takes 8 bytes an entry
  // more while it is built. InvalidArgument for a column of another type than integers; else errors
  // as ColumnTable::Gather's.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> Build(const ColumnTable& table,
                                                                size_t column,
                                                                absl::Span<const RowId> row_ids,
                                                                int threads);
  // Of values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> Build(const ColumnValues& values,
                                                                int threads);
  // Counts of values alone, of any type: every sum is 0.
  static absl::StatusOr<std::unique_ptr<const RangeSums>> BuildCounts(
      const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads);
  static absl::StatusOr<std::unique_ptr<const RangeSums>> BuildCounts(const ColumnValues& values,
                                                                      int threads);
  virtual ~RangeSums() = default;

  // sums[i] = that of positions [begin[i], end[i]), none where begin[i] >= end[i]. The spans are of
  // one length; requires that ends be at most the number of entries. Many ranges in one call
  // overlap their reads.
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
