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

// A column's values in the order of an index's entries, as numbers of 64 bits in the values' order:
// unsigned integers as they are, signed ones with the sign bit flipped, floats in IEEE 754 total
// order with every NaN equal and last (KeyCodec's order), text and bytes by their rank among the
// column's distinct values.
struct EntryValues {
  AlignedBuffer<uint64_t> numbers;  // one an entry, 0 where it is null
  std::vector<uint64_t> present;    // bit i % 64 of i / 64: whether entry i has a value
  uint64_t least = UINT64_MAX;      // of the values
  uint64_t most = 0;                // likewise; below `least` where there is none
  uint64_t nulls = 0;

  bool is_null(size_t i) const { return (present[i / 64] >> i % 64 & 1) == 0; }
};

// Gathers values[i] = the column at row_ids[i], on up to `threads` threads. Errors as
// ColumnTable::Gather's. Takes 8 bytes an entry; of text and bytes, for the time being, what
// SortedRun::FromUnsorted takes for the table's rows. Throws std::bad_alloc.
absl::StatusOr<EntryValues> GatherEntries(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads);

// The same of values that are in the order of the entries. Throws std::bad_alloc.
absl::StatusOr<EntryValues> OrderEntries(const ColumnValues& values, int threads);

// Which of the entries have a value: their numbers are all 0. Reads no text.
absl::StatusOr<EntryValues> GatherPresent(const ColumnTable& table, size_t column,
                                          absl::Span<const RowId> row_ids, int threads);
EntryValues PresentOf(const ColumnValues& values, int threads);

}  // namespace cairn
