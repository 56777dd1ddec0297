#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"

namespace cairn {

enum class Extreme : uint8_t { kMin, kGreatest };

// Where a range has no value: it is empty, or all are null.
inline constexpr Position kNoPosition = UINT32_MAX;

// Where in a range of an index's entries the least and the greatest value of a column stand: MIN
// and MAX, at a cost that does not depend on the range's length. Immutable; thread-safe.
//
// The order is KeyCodec's: floats in IEEE 754 total order (-0 before +0), every NaN equal and last,
// so that MAX is NaN where there is one, and MIN only where there is nothing else; text and bytes
// as by memcmp. Nulls are passed over. Of equal values it is the first.
//
// Values are kept as differences from the least one, text as ranks, in 1, 2, 4 or 8 bytes,
// whichever holds them all; the extremes of blocks of a line of cache, of 16 of these, and a sparse
// table over those (Bender and Farach-Colton, The LCA Problem Revisited, 2000) make that 1.2, 2.4,
// 5.1 or 9.7 bytes an entry at 2^24 of them.
class RangeExtremes {
 public:
  // Of values[i] = the column at row_ids[i], on up to `threads` threads. Errors as
  // ColumnTable::Gather's. Takes 8 bytes an entry more while it is built, and for text and bytes
  // what SortedRun::FromUnsorted takes for the table's rows.
  static absl::StatusOr<std::unique_ptr<const RangeExtremes>> Build(const ColumnTable& table,
                                                                    size_t column,
                                                                    absl::Span<const RowId> row_ids,
                                                                    int threads);
  // Of values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeExtremes>> Build(const ColumnValues& values,
                                                                    int threads);
  virtual ~RangeExtremes() = default;

  // found[i] = where the extreme of positions [begin[i], end[i]) stands, or kNoPosition. The spans
  // are of one length; requires that ends be at most the number of entries. Many ranges in one call
  // overlap their reads.
  virtual void Find(Extreme extreme, absl::Span<const Position> begin,
                    absl::Span<const Position> end, absl::Span<Position> found) const = 0;
  Position Find(Extreme extreme, Position begin, Position end) const {
    Position found = kNoPosition;
    Find(extreme, absl::MakeConstSpan(&begin, 1), absl::MakeConstSpan(&end, 1),
         absl::MakeSpan(&found, 1));
    return found;
  }

  // A number for the value at a position, which is not null: a < b exactly where the values are in
  // that order. Of this object alone.
  virtual uint64_t Code(Position position) const = 0;

  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace cairn
