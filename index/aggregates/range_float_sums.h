#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"

namespace cairn {

// The sum and the number of the floats in a range. Nulls do not count.
struct FloatSum {
  double sum = 0;
  uint64_t count = 0;
};

// Sums of floats over positions of an index's entries, in time logarithmic in the length of the
// range: a tree of sums, each of 16 children. Immutable; thread-safe.
//
// Nothing is subtracted, so there is no cancellation. A NaN or an infinity outside of a range has
// no effect, and one inside has the effect that IEEE 754 defines. Additions are in double, in an
// order that depends only on the range's ends, so that a range always has the same sum. Among n
// entries, at most about 5 log2(n) additions are in sequence, compared with n in a loop. A sum of
// zeros is +0.
//
// Takes the column's width per entry, 1.6 bytes for the sums, and a quarter of a byte if there are
// nulls.
class RangeFloatSums {
 public:
  // Indexes values[i] = the column at row_ids[i], on up to `threads` threads. Errors:
  // InvalidArgument for a column that has no floats; those of ColumnTable::Gather.
  static absl::StatusOr<std::unique_ptr<const RangeFloatSums>> Build(
      const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads);
  // Indexes values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeFloatSums>> Build(const ColumnValues& values,
                                                                     int threads);
  virtual ~RangeFloatSums() = default;

  // Sets sums[i] to that of positions [begin[i], end[i]), which is empty if begin[i] >= end[i]. All
  // spans have the same length; requires that ends be at most the number of entries.
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
