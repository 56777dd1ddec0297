#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"

namespace cairn {

// The sum of the floats in a range, and how many there are. Nulls do not count.
struct FloatSum {
  double sum = 0;
  uint64_t count = 0;
};

// Sums of floats over positions of an index's entries, in time logarithmic in their number: a tree
// of sums, each of 16 below it. Immutable; thread-safe.
//
// Nothing is subtracted: a NaN or an infinity outside of a range does not matter, one inside gives
// what IEEE 754 says, and nothing is cancelled. Additions are in double, in an order that the
// range's ends alone decide, so that a range has the same sum each time; with n entries at most
// about 5 log2(n) of them are one upon the other, where a loop has n. A sum of zeros is +0.
//
// Takes the column's width an entry, 1.6 bytes for the sums, and a quarter where some are null.
class RangeFloatSums {
 public:
  // Of values[i] = the column at row_ids[i], on up to `threads` threads. InvalidArgument for a
  // column of another type than floats; else errors as ColumnTable::Gather's.
  static absl::StatusOr<std::unique_ptr<const RangeFloatSums>> Build(
      const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads);
  // Of values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeFloatSums>> Build(const ColumnValues& values,
                                                                     int threads);
  virtual ~RangeFloatSums() = default;

  // sums[i] = that of positions [begin[i], end[i]), none where begin[i] >= end[i]. The spans are of
  // one length; requires that ends be at most the number of entries.
  virtual void Sum(absl::Span<const Position> begin, absl::Span<const Position> end,
                   absl::Span<FloatSum> sums) const = 0;
  FloatSum Sum(Position begin, Position end) const {
    FloatSum sum;
    Sum(absl::MakeConstSpan(&begin, 1), absl::MakeConstSpan(&end, 1), absl::MakeSpan(&sum, 1));
    return sum;
  }

  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace cairn
