#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "cpu_fast/simd/key_filter.h"
#include "cpu_fast/simd/slotted_array.h"
#include "engine/delta/change_log.h"
#include "engine/delta/delta_rows.h"
#include "engine/delta/delta_segment.h"
#include "engine/delta/delta_tuples.h"
#include "engine/delta/position_set.h"
#include "engine/delta/row_positions.h"
#include "engine/rows/row_table.h"
#include "index/columns/column_table.h"

namespace cairn {

class CompactDelta;

// Counts of a version, for IndexStats and for the decision when to merge.
struct DeltaStats {
  uint64_t rows = 0;             // of the version: live rows of the base, and live new rows
  uint64_t entries = 0;          // of the version
  uint64_t removed_entries = 0;  // of the base's
  uint64_t added_entries = 0;
  uint64_t dead_rows = 0;  // of the base
  uint64_t new_rows = 0;   // rows that the base lacks, dead or not
  // DeltaWriter::Renumber leaves these out: new rows without entries, and tuples that a later tuple
  // of the same row replaced.
  uint64_t dead_new_rows = 0;
  uint64_t dead_tuples = 0;
  uint64_t segments = 0;
  uint64_t bytes = 0;  // of memory, in addition to the base's
};

// The changes since a base was built. Together with the base they form a version, the state of an
// index that one query sees. A DeltaWriter makes it, and it is immutable from then on. Safe from
// any number of threads. Versions share the memory that they have in common.
//
// A row keeps its id from version to version even if its keys change, until a writer renumbers the
// new rows (DeltaWriter::Renumber). Rows of the base keep the base's ids; new rows (DeltaRows) have
// the ids after them. A version's entries are those of the base at positions that are not removed,
// and those of the parts at positions that are not removed. No entry is in two of these. All are in
// (key, primary key) order.
struct Delta {
  SortedRun base_run;
  RowTable base_rows;
  ColumnTable base_columns;  // included columns of the base's rows

  PositionSet removed;  // positions in base_run of entries that no longer exist
  std::shared_ptr<const SlottedArray> removed_positions;  // null unless this is a compact delta
  std::vector<DeltaPart> parts;                           // added entries, the oldest segment first
  std::shared_ptr<const KeyFilter> filter;        // of all changed keys; null if there are none
  std::shared_ptr<const RowPositions> positions;  // of the base; null before the first change
  PositionSet dead_rows;  // the base's rows that an update left without entries
  std::shared_ptr<const DeltaRows> rows;
  RowId end_row = 0;                          // the version's row ids are less than this
  std::shared_ptr<const DeltaTuples> tuples;  // null: no included columns
  uint32_t end_tuple = 0;                     // end of the version's tuples: all before this one
  uint32_t tuple_rows = 0;                    // number of rows with a tuple
  uint64_t live_new_rows = 0;                 // new rows that have entries
  bool is_branch = false;  // made by BranchVersion, so that no DeltaWriter's version follows it
  std::shared_ptr<const ChangeLog::Place> place;  // the end of its changes in the log
  std::shared_ptr<CompactDelta> compact;          // null if this is the compact form itself

  // Returns whether the version has exactly the base's entries.
  bool empty() const { return removed.empty() && added_entries() == 0; }
  uint64_t added_entries() const;
  DeltaStats Stats() const;

  // Appends the primary key of each row, dead or not. Errors: OutOfRange, which names the largest
  // id, if that does not exist; DataLoss if the base is damaged. After an error the list holds some
  // of the keys.
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids, StringList* primary_keys) const;

  // Returns the tuple that the row was given since the base was built, if the index includes
  // columns. Returns nullopt if the row has the base's values.
  std::optional<std::string_view> Tuple(RowId row) const {
    return end_tuple == 0 ? std::nullopt : tuples->Find(row, end_tuple);
  }

  // Appends included column columns[i] of each row, dead or not, to (*values)[i], which must have
  // the column's type. The values are those of this version. Errors: those of PrimaryKeys;
  // InvalidArgument if a column does not exist. After an error the columns hold some of the values.
  absl::Status Included(absl::Span<const RowId> row_ids, absl::Span<const size_t> columns,
                        absl::Span<ColumnValues> values) const;

  // Sets *values to included column `column` of a part's entries. Entries that still exist get
  // their values of this version; values of removed entries are unspecified. Errors: those of
  // Included.
  absl::Status SegmentValues(const DeltaSegment& segment, size_t column,
                             ColumnValues* values) const;

  // Returns all added entries in one segment, for a merge into a new base; null if there are none.
  // Errors: ResourceExhausted if memory runs out.
  absl::StatusOr<std::shared_ptr<const DeltaSegment>> AddedEntries() const;
};

}  // namespace cairn
