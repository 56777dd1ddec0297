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

// Counts of a version, for IndexStats and for those who decide when to merge.
struct DeltaStats {
  uint64_t rows = 0;             // of the version: all the base's but the dead ones, and new ones
  uint64_t entries = 0;          // of the version
  uint64_t removed_entries = 0;  // of the base's
  uint64_t added_entries = 0;
  uint64_t dead_rows = 0;  // of the base's
  uint64_t new_rows = 0;   // that the base lacks, dead or not
  // What DeltaWriter::Renumber leaves out: new rows without entries, and tuples of rows that were
  // given a later one.
  uint64_t dead_new_rows = 0;
  uint64_t dead_tuples = 0;
  uint64_t segments = 0;
  uint64_t bytes = 0;  // of memory beyond the base's
};

// What changed since a base was built: with it a version, the state of an index that one query
// sees. Immutable once a DeltaWriter has made it; safe from any number of threads. Versions share
// what they have in common.
//
// A row keeps its id from version to version, whatever becomes of its keys, until a writer numbers
// the later rows again (DeltaWriter::Renumber): rows of the base have the ids that they have there,
// later ones (DeltaRows) those after it. A version's entries are
// those of the base at positions that were not removed, and those of the parts, likewise; none is
// in two of these. Everywhere they are in (key, primary key) order.
struct Delta {
  SortedRun base_run;
  RowTable base_rows;
  ColumnTable base_columns;  // what the index includes of these rows

  PositionSet removed;  // positions of base_run whose entries are no longer there
  std::shared_ptr<const SlottedArray> removed_positions;  // the same; of a compact delta, else null
  std::vector<DeltaPart> parts;                   // entries that came, the oldest segment first
  std::shared_ptr<const KeyFilter> filter;        // of the keys of both; null while there are none
  std::shared_ptr<const RowPositions> positions;  // of the base's rows; null before a first change
  PositionSet dead_rows;  // the base's rows that an update left without entries
  std::shared_ptr<const DeltaRows> rows;
  RowId end_row = 0;                              // the version's rows have ids below
  std::shared_ptr<const DeltaTuples> tuples;      // where the index includes columns, else null
  uint32_t end_tuple = 0;                         // the version's tuples are those below
  uint32_t tuple_rows = 0;                        // rows that were given one of these
  uint64_t live_new_rows = 0;                     // rows that the base lacks and that have entries
  std::shared_ptr<const ChangeLog::Place> place;  // where its changes end
  std::shared_ptr<CompactDelta> compact;          // this in another form; null where that is none

  // Whether the base has the same entries.
  bool empty() const { return removed.empty() && added_entries() == 0; }
  uint64_t added_entries() const;
  DeltaStats Stats() const;

  // Appends the primary key of each row, dead or not. OutOfRange, naming the first one, for an id
  // that is no row's; DataLoss. After an error the column holds some of the keys.
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids, StringList* primary_keys) const;

  // The tuple that the row was given since the base was built, in an index that includes columns;
  // none where its values are the base's.
  std::optional<std::string_view> Tuple(RowId row) const {
    return end_tuple == 0 ? std::nullopt : tuples->Find(row, end_tuple);
  }

  // Appends included column columns[i] of each row, dead or not, to (*values)[i], which is of its
  // type: the row's values in this version. Errors as PrimaryKeys'; InvalidArgument for a column
  // that there is not. After an error the columns hold some of the values.
  absl::Status Included(absl::Span<const RowId> row_ids, absl::Span<const size_t> columns,
                        absl::Span<ColumnValues> values) const;

  // Sets *values to included column `column` of a part's entries: those that its entries which are
  // still there have in this version, and any that the others had. Errors as Included's.
  absl::Status SegmentValues(const DeltaSegment& segment, size_t column,
                             ColumnValues* values) const;

  // All entries that came, in one segment: what a merge into a new base adds. Null where there are
  // none. ResourceExhausted where memory does not suffice.
  absl::StatusOr<std::shared_ptr<const DeltaSegment>> AddedEntries() const;
};

}  // namespace cairn
