#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/types.h"
#include "engine/delta/new_row_order.h"
#include "engine/delta/position_set.h"
#include "engine/delta/row_finder.h"
#include "engine/delta/row_updates.h"

namespace cairn {

// Primary key -> row id, of the rows that came after a base. The keys are views into DeltaRows.
using NewRowIds = absl::flat_hash_map<std::string_view, RowId>;

// A range of primary keys, [from, to).
using KeyRange = std::pair<std::string_view, std::string_view>;

// InvalidArgument where a batch is not of an index with such keys, and with or without included
// columns.
absl::Status CheckIsOf(PhysicalType kind, bool has_tuples, const RowUpdates& updates);

// InvalidArgument where a batch's columns do not fit together.
absl::Status CheckColumns(const RowUpdates& updates);

// The deleted ranges that hold anything, in order, those that overlap or touch made one: views into
// `updates`. SettledChanges has done so for one slice of the log, but updates that are merged out
// of several, or read from a file, have their ranges in any order. Throws std::bad_alloc.
std::vector<KeyRange> DeletedRanges(const RowUpdates& updates);

// A row of a batch of updates.
struct UpdateRow {
  std::string_view primary_key;
  uint32_t update = 0;  // its number in the batch
  RowId rank = 0;       // the number of base rows whose primary key is less
  RowId row = kNoRow;   // kNoRow: one that no one has seen before
};

// The rows of a batch in primary-key order. InvalidArgument where the batch's columns do not fit
// together or a primary key comes twice; DataLoss. Throws std::bad_alloc.
absl::Status FindUpdateRows(const RowUpdates& updates, const RowFinder& base_rows,
                            const NewRowIds& new_rows, std::vector<UpdateRow>* rows);

// Calls delete_row for the rows that are in the batch's deleted ranges and not among `rows`, which
// FindUpdateRows gave and whose new rows have ids by now: for those of the base that are not among
// `dead_rows`, and for later ones that NewRowOrder::Take finds. Takes time for these, and to find
// the ranges. DataLoss. Throws std::bad_alloc.
absl::Status ForEachDeletedRow(const RowUpdates& updates, const RowFinder& base_rows,
                               const PositionSet& dead_rows, NewRowOrder* new_rows,
                               const std::vector<UpdateRow>& rows,
                               absl::FunctionRef<void(RowId)> delete_row);

}  // namespace cairn
