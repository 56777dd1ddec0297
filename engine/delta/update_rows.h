#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/types.h"
#include "engine/delta/new_row_ids.h"
#include "engine/delta/new_row_order.h"
#include "engine/delta/position_set.h"
#include "engine/delta/row_finder.h"
#include "engine/delta/row_updates.h"

namespace cairn {

// A range of primary keys, [from, to).
using KeyRange = std::pair<std::string_view, std::string_view>;

// Returns InvalidArgument unless a batch has keys of this kind, and tuples exactly if `has_tuples`.
absl::Status CheckIsOf(PhysicalType kind, bool has_tuples, const RowUpdates& updates);

// Returns InvalidArgument if the lengths of a batch's columns are inconsistent.
absl::Status CheckColumns(const RowUpdates& updates);

// Returns the deleted ranges that are not empty, in order; ranges that overlap or touch are merged.
// The results are views into `updates`. SettledChanges already does this for one slice of the log.
// But updates that are merged from several, or read from a file, have ranges in any order. Throws
// std::bad_alloc.
std::vector<KeyRange> DeletedRanges(const RowUpdates& updates);

// A row of a batch of updates.
struct UpdateRow {
  std::string_view primary_key;
  uint32_t update = 0;  // its index in the batch
  RowId rank = 0;       // the number of base rows whose primary key is less
  RowId row = kNoRow;   // kNoRow if the row is new
};

// Finds the rows of a batch and returns them in primary-key order. Errors: InvalidArgument if the
// lengths of the batch's columns are inconsistent or a primary key occurs twice; DataLoss if the
// base is damaged. Throws std::bad_alloc.
absl::Status FindUpdateRows(const RowUpdates& updates, const RowFinder& base_rows,
                            const NewRowIds& new_rows, std::vector<UpdateRow>* rows);

// Calls delete_row for the rows in the batch's deleted ranges that are not among `rows`. `rows` is
// the result of FindUpdateRows; its new rows must have ids by now. The calls are for rows of the
// base that are not in `dead_rows`, and for new rows that NewRowOrder::Take finds. The time is
// proportional to these rows, plus a search for each range. Errors: DataLoss if the base is
// damaged. Throws std::bad_alloc.
absl::Status ForEachDeletedRow(const RowUpdates& updates, const RowFinder& base_rows,
                               const PositionSet& dead_rows, NewRowOrder* new_rows,
                               const std::vector<UpdateRow>& rows,
                               absl::FunctionRef<void(RowId)> delete_row);

}  // namespace cairn
