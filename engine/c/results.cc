// Exports results of queries: cairn_matches and cairn_rows.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/types.h"
#include "engine/c/arrow_out.h"
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
  Export(ColumnOut::Bytes("cursor", *copies), copies, schema, array);
  return absl::OkStatus();
}

// Returns the rows of a FindResult or FetchResult as a column. `wide` stores the rows of an index
// in shards.
template <typename Rows>
ColumnOut RowColumn(const Rows& rows, bool in_shards, std::vector<GlobalRowId>* wide) {
  if (!in_shards) return ColumnOut::RowIds("row_id", rows.row_ids);
  wide->reserve(rows.row_ids.size());
  for (size_t i = 0; i < rows.row_ids.size(); ++i) {
    wide->push_back(MakeGlobalRowId(rows.shards[i], rows.row_ids[i]));
  }
  return ColumnOut::GlobalRowIds("row_id", *wide);
}

absl::Status ExportMatches(cairn_matches* from, ArrowSchema* schema, ArrowArray* array) {
  struct Owner {
    FindResult matches;
    KeysOut keys;
    std::vector<GlobalRowId> wide;
  };
  auto owner = std::make_shared<Owner>();
  if (from->matches.offsets.empty()) from->matches.offsets.push_back(0);
  if (from->codec.has_value()) {
    RETURN_IF_ERROR(owner->keys.Decode(*from->codec, from->matches.keys));
  }
  // The included columns are exported separately.
  const auto swap = [&] {
    std::swap(owner->matches, from->matches);
    std::swap(owner->matches.columns, from->matches.columns);
  };
  swap();
  try {
    const FindResult& matches = owner->matches;
    ColumnOut items = RowColumn(matches, from->in_shards, &owner->wide);
    if (from->codec.has_value()) {
      std::vector<ColumnOut> members;
      members.push_back(std::move(items));
      members.push_back(owner->keys.Column("key", *from->codec, matches.keys));
      items = ColumnOut::Struct("item", matches.row_ids.size(), std::move(members));
    }
    Export(ColumnOut::Lists(matches.offsets, std::move(items)), owner, schema, array);
  } catch (...) {
    swap();
    throw;
  }
  from->codec.reset();
  return absl::OkStatus();
}

absl::Status ExportMatchedColumns(cairn_matches* from, ArrowSchema* schema, ArrowArray* array) {
  if (from->matches.columns.size() != from->columns.size()) {
    return absl::FailedPreconditionError("the columns have already been moved out");
  }
  auto owner = std::make_shared<std::vector<ColumnValues>>();
  owner->swap(from->matches.columns);
  try {
    Export(ColumnOut::Struct("", from->columns, *owner), owner, schema, array);
  } catch (...) {
    owner->swap(from->matches.columns);
    throw;
  }
  return absl::OkStatus();
}

absl::Status ExportRows(cairn_rows* from, ArrowSchema* schema, ArrowArray* array) {
  struct Owner {
    FetchResult rows;
    std::vector<GlobalRowId> wide;
  };
  auto owner = std::make_shared<Owner>();
  if (from->rows.offsets.empty()) from->rows.offsets.push_back(0);
  std::swap(owner->rows, from->rows);
  try {
    const FetchResult& rows = owner->rows;
    std::vector<ColumnOut> members;
    members.push_back(RowColumn(rows, from->in_shards, &owner->wide));
    members.push_back(ColumnOut::Bytes("primary_key", rows.primary_keys));
    members.push_back(ColumnOut::Bytes("value", rows.values));
    Export(ColumnOut::Lists(rows.offsets,
                            ColumnOut::Struct("item", rows.row_ids.size(), std::move(members))),
           owner, schema, array);
  } catch (...) {
    std::swap(owner->rows, from->rows);
    throw;
  }
  return absl::OkStatus();
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
