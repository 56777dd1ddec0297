#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "engine/delta/delta.h"
#include "engine/merge/merge_pace.h"
#include "engine/merge/merged_row_ids.h"
#include "engine/rows/row_table_writer.h"
#include "index/columns/columns_builder.h"

namespace cairn {

// In how many parts so many threads write a table of so many rows.
size_t MergedRowParts(uint64_t rows, int threads);

// Adds the rows that a version has left to part `part` of `parts` of `table`: the base's live rows
// in a range, read in their order, and between them the later ones; and their included values to
// `columns`, which is null where the index includes none. Different parts by different threads.
// DataLoss where the base is damaged; Cancelled; the errors of both. Throws std::bad_alloc.
absl::Status MergeRows(const Delta& delta, const MergedRowIds& ids, size_t part, size_t parts,
                       MergePace* pace, RowTableWriter* table, ColumnsBuilder* columns);

}  // namespace cairn
