#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"

namespace cairn {

enum class Extreme : uint8_t { kMin, kGreatest };

// The result for a range without values: it is empty, or all its values are null.
inline constexpr Position kNoPosition = UINT32_MAX;

// The positions of the min and max value of a column in a range of an index's entries, at a cost
// that does not depend on the range's length. Immutable; thread-safe.
//
// The order is KeyCodec's. Floats are in IEEE 754 total order (-0 before +0), with every NaN equal
// and last: the max is NaN if the range has one, and the min only if it has nothing else. Text and
// bytes compare as by memcmp. Nulls are ignored. If several positions have the extreme value, the
// result is the first.
//
// Values are stored as differences from the lowest one, and text as ranks, in 1, 2, 4 or 8 bytes
// each, whichever is enough for all. There are also the extremes of blocks of one cache line and of
// groups of 16 blocks, and a sparse table over the groups (Bender and Farach-Colton, The LCA
// Problem Revisited, 2000). For 2^24 entries the total is 1.2, 2.4, 5.1 or 9.7 bytes per entry.
class RangeExtremes {
 public:
  // Indexes values[i] = the column at row_ids[i], on up to `threads` threads. Errors: those of
  // ColumnTable::Gather. The build temporarily takes 8 bytes more per entry. For text and bytes it
  // also takes as much as SortedRun::FromUnsorted for the table's rows.
  static absl::StatusOr<std::unique_ptr<const RangeExtremes>> Build(const ColumnTable& table,
                                                                    size_t column,
                                                                    absl::Span<const RowId> row_ids,
                                                                    int threads);
  // Indexes values that are in the order of the entries.
  static absl::StatusOr<std::unique_ptr<const RangeExtremes>> Build(const ColumnValues& values,
                                                                    int threads);
  virtual ~RangeExtremes() = default;

  // Sets found[i] to the position of the extreme in [begin[i], end[i]), or kNoPosition. All spans
  // have the same length; requires that ends be at most the number of entries. The reads of many
  // ranges in one call overlap.
  virtual void Find(Extreme extreme, absl::Span<const Position> begin,
                    absl::Span<const Position> end, absl::Span<Position> found) const = 0;
  Position Find(Extreme extreme, Position begin, Position end) const {
    Position found = kNoPosition;
    Find(extreme, absl::MakeConstSpan(&begin, 1), absl::MakeConstSpan(&end, 1),
         absl::MakeSpan(&found, 1));
    return found;
  }

  // Returns a code of the value at a position, which must not be null. The codes of one object
  // compare as the values do.
  virtual uint64_t Code(Position position) const = 0;

  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace cairn
