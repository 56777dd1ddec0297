#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// A column's values in the order of an index's entries, as 64-bit numbers that have the values'
// order. Unsigned integers are unchanged, and signed ones have the sign bit flipped. Floats are in
// KeyCodec's order: IEEE 754 total order, with every NaN equal and last. Text and bytes are ranks
// among the column's distinct values.
struct EntryValues {
  AlignedBuffer<uint64_t> numbers;  // one per entry, 0 if it is null
  std::vector<uint64_t> present;    // bit i % 64 of i / 64: whether entry i has a value
  uint64_t least = UINT64_MAX;      // the lowest value
  uint64_t most = 0;                // the highest value; below `least` if there are no values
  uint64_t nulls = 0;

  bool is_null(size_t i) const { return (present[i / 64] >> i % 64 & 1) == 0; }
};

// Gathers values[i] = the column at row_ids[i], on up to `threads` threads. Errors: those of
// ColumnTable::Gather. Takes 8 bytes per entry. For text and bytes it temporarily also takes as
// much as SortedRun::FromUnsorted for the table's rows. Throws std::bad_alloc.
absl::StatusOr<EntryValues> GatherEntries(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads);

// As GatherEntries, for values that are already in the order of the entries. Throws std::bad_alloc.
absl::StatusOr<EntryValues> OrderEntries(const ColumnValues& values, int threads);

// Reports which entries have a value; all their numbers are 0. Reads no text.
absl::StatusOr<EntryValues> GatherPresent(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads);
EntryValues PresentOf(const ColumnValues& values, int threads);

}  // namespace cairn
