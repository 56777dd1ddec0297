// Exports results of queries: cairn_matches and cairn_rows.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/internal/shared_column.h"
#include "engine/c/error.h"
#include "engine/c/handles.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Exports a copy of the cursors, one per range.
absl::Status ExportCursors(const std::vector<std::string>& cursors, ArrowSchema* schema,
                           ArrowArray* array) {
  auto copies = std::make_shared<StringList>();
  for (const std::string& cursor : cursors) copies->Append(cursor);
  return SharedColumn::Bytes(std::move(copies)).Export(schema, array, "cursor");
}

// Moves results out and calls export(results), a shared pointer. If that fails, moves them back.
template <typename Results, typename Function>
absl::Status ExportMoved(Results* from, Function export_results) {
  auto results = std::make_shared<Results>();
  std::swap(*results, *from);
  const absl::Status status = Guarded("exporting results", [&] { return export_results(results); });
  if (!status.ok()) std::swap(*results, *from);
  return status;
}

// Exports the items of each query as a list. `results` owns the offsets.
absl::Status ExportLists(std::vector<uint64_t>* offsets, SharedColumn::Field items,
                         std::shared_ptr<const void> results, ArrowSchema* schema,
                         ArrowArray* array) {
  if (offsets->empty()) offsets->push_back(0);
  return SharedColumn::Lists(*offsets, std::move(items), std::move(results))
      .AsBytes()
      .Export(schema, array);
}

absl::Status ExportMatches(cairn_matches* from, ArrowSchema* schema, ArrowArray* array) {
  return ExportMoved(&from->matches, [&](const std::shared_ptr<FindResult>& matches) {
    SharedColumn::Field items = {"row_id", SharedColumn::RowIds(matches, from->in_shards)};
    if (from->codec.has_value()) {
      ASSIGN_OR_RETURN(SharedColumn keys,
                       SharedColumn::Keys(*from->codec, {matches, &matches->keys}));
      std::vector<SharedColumn::Field> members = {std::move(items), {"key", std::move(keys)}};
      items = {"item", SharedColumn::Structs(matches->row_ids.size(), std::move(members))};
    }
    RETURN_IF_ERROR(ExportLists(&matches->offsets, std::move(items), matches, schema, array));
    from->matches.columns.swap(matches->columns);  // these are exported separately
    from->codec.reset();
    return absl::OkStatus();
  });
}

absl::Status ExportMatchedColumns(cairn_matches* from, ArrowSchema* schema, ArrowArray* array) {
  if (from->matches.columns.size() != from->columns.size()) {
    return absl::FailedPreconditionError("the columns have already been moved out");
  }
  return ExportMoved(&from->matches.columns, [&](const auto& columns) {
    const size_t rows = columns->empty() ? 0 : columns->front().size();
    return SharedColumn::Structs(rows, SharedColumn::Fields(from->columns, columns))
        .AsBytes()
        .Export(schema, array);
  });
}

absl::Status ExportRows(cairn_rows* from, ArrowSchema* schema, ArrowArray* array) {
  return ExportMoved(&from->rows, [&](const std::shared_ptr<FetchResult>& rows) {
    std::vector<SharedColumn::Field> members = {
        {"row_id", SharedColumn::RowIds(rows, from->in_shards)},
        {"primary_key", SharedColumn::Bytes({rows, &rows->primary_keys})},
        {"value", SharedColumn::Bytes({rows, &rows->values})}};
    const SharedColumn items = SharedColumn::Structs(rows->row_ids.size(), std::move(members));
    return ExportLists(&rows->offsets, {"item", items}, rows, schema, array);
  });
}

}  // namespace
}  // namespace cairn

cairn_error* cairn_matches_new(cairn_matches** matches) {
  return cairn::CFunction("making an object", [&] {
    absl::Status status = cairn::CheckNotNull(matches, "matches");
    if (status.ok()) *matches = new cairn_matches;
    return status;
  });
}

void cairn_matches_free(cairn_matches* matches) {
  delete matches;
}

size_t cairn_matches_size(const cairn_matches* matches) {
  return matches == nullptr ? 0 : matches->matches.size();
}

const uint64_t* cairn_matches_offsets(const cairn_matches* matches) {
  static constexpr uint64_t kNone = 0;
  return cairn_matches_size(matches) == 0 ? &kNone : matches->matches.offsets.data();
}

const uint32_t* cairn_matches_row_ids(const cairn_matches* matches) {
  return matches == nullptr ? nullptr : matches->matches.row_ids.data();
}

const uint32_t* cairn_matches_shards(const cairn_matches* matches) {
  return matches == nullptr || !matches->in_shards ? nullptr : matches->matches.shards.data();
}

cairn_error* cairn_matches_export(cairn_matches* matches, ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("exporting matches", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(matches, "matches", schema, "schema", array, "array"));
    return cairn::ExportMatches(matches, schema, array);
  });
}

cairn_error* cairn_matches_columns(cairn_matches* matches, ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("exporting included columns", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(matches, "matches", schema, "schema", array, "array"));
    return cairn::ExportMatchedColumns(matches, schema, array);
  });
}

cairn_error* cairn_matches_cursors(const cairn_matches* matches, ArrowSchema* schema,
                                   ArrowArray* array) {
  return cairn::CFunction("exporting cursors", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(matches, "matches", schema, "schema", array, "array"));
    return cairn::ExportCursors(matches->matches.cursors, schema, array);
  });
}

cairn_error* cairn_rows_new(cairn_rows** rows) {
  return cairn::CFunction("making an object", [&] {
    absl::Status status = cairn::CheckNotNull(rows, "rows");
    if (status.ok()) *rows = new cairn_rows;
    return status;
  });
}

void cairn_rows_free(cairn_rows* rows) {
  delete rows;
}

uint64_t cairn_rows_stale(const cairn_rows* rows) {
  return rows == nullptr ? 0 : rows->rows.stale;
}

cairn_error* cairn_rows_export(cairn_rows* rows, ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("exporting rows", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(rows, "rows", schema, "schema", array, "array"));
    return cairn::ExportRows(rows, schema, array);
  });
}

cairn_error* cairn_rows_cursors(const cairn_rows* rows, ArrowSchema* schema, ArrowArray* array) {
  return cairn::CFunction("exporting cursors", [&] {
    RETURN_IF_ERROR(cairn::CheckNotNull(rows, "rows", schema, "schema", array, "array"));
    return cairn::ExportCursors(rows->rows.cursors, schema, array);
  });
}
