#include "engine/delta/delta.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/delta/compact_delta.h"
#include "index/columns/tuple.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {

uint64_t Delta::added_entries() const {
  uint64_t entries = 0;
  for (const DeltaPart& part : parts) entries += part.entries();
  return entries;
}

DeltaStats Delta::Stats() const {
  DeltaStats stats;
  stats.removed_entries = removed.size();
  stats.added_entries = added_entries();
  stats.entries = base_run.size() - stats.removed_entries + stats.added_entries;
  stats.dead_rows = dead_rows.size();
  stats.new_rows = end_row - base_rows.rows();
  stats.dead_new_rows = stats.new_rows - live_new_rows;
  stats.dead_tuples = end_tuple - tuple_rows;
  stats.rows = base_rows.rows() - stats.dead_rows + live_new_rows;
  stats.segments = parts.size();
  stats.bytes = removed.memory_bytes() + dead_rows.memory_bytes();
  for (const DeltaPart& part : parts) {
    stats.bytes += part.segment->memory_bytes() + part.removed.memory_bytes();
  }
  if (filter != nullptr) stats.bytes += filter->memory_bytes();
  if (positions != nullptr) stats.bytes += positions->memory_bytes();
  if (rows != nullptr) stats.bytes += rows->memory_bytes();
  if (tuples != nullptr) stats.bytes += tuples->memory_bytes();
  if (compact != nullptr) stats.bytes += compact->memory_bytes(*this);
  if (place != nullptr) stats.bytes += place->memory_bytes();
  return stats;
}

absl::Status Delta::PrimaryKeys(absl::Span<const RowId> row_ids, StringList* primary_keys) const {
  const uint64_t base_end = base_rows.rows();
  RowId last = 0;
  for (const RowId row : row_ids) last = std::max(last, row);
  if (last >= end_row && !row_ids.empty()) {
    return absl::OutOfRangeError(
        absl::StrFormat("there is no row %d, only %d rows", last, end_row));
  }
  if (last < base_end) return base_rows.PrimaryKeys(row_ids, primary_keys);
  std::vector<RowId> of_base;
  of_base.reserve(row_ids.size());
  std::copy_if(row_ids.begin(), row_ids.end(), std::back_inserter(of_base),
               [&](RowId row) { return row < base_end; });
  StringList base_keys;
  RETURN_IF_ERROR(base_rows.PrimaryKeys(of_base, &base_keys));
  size_t next = 0;
  for (RowId row : row_ids) {
    primary_keys->Append(row < base_end ? base_keys[next++] : rows->primary_key(row));
  }
  return absl::OkStatus();
}

namespace {

// Appends included columns of rows. A row has the last tuple before `end_tuple`, or the base's
// values if it has no such tuple.
absl::Status AppendIncluded(const Delta& delta, uint32_t end_tuple, absl::Span<const RowId> row_ids,
                            absl::Span<const size_t> columns, absl::Span<ColumnValues> values) {
  const absl::Span<const ColumnSchema> schema = delta.base_columns.columns();
  std::vector<DataType> types;
  for (const ColumnSchema& column : schema) types.push_back(column.type);
  for (const size_t column : columns) {
    if (column >= types.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("there is no column %d, only %d", column, types.size()));
    }
  }
  std::vector<DataValue> of_row(types.size());
  // Consecutive rows with the base's values are gathered together.
  for (size_t begin = 0, i = 0; i <= row_ids.size(); ++i) {
    std::optional<std::string_view> tuple;
    if (i < row_ids.size()) {
      if (row_ids[i] >= delta.end_row) {
        return absl::OutOfRangeError(
            absl::StrFormat("there is no row %d, only %d rows", row_ids[i], delta.end_row));
      }
      if (end_tuple != 0) tuple = delta.tuples->Find(row_ids[i], end_tuple);
      if (!tuple.has_value()) continue;
    }
    for (size_t c = 0; c < columns.size() && begin < i; ++c) {
      RETURN_IF_ERROR(
          delta.base_columns.Gather(columns[c], row_ids.subspan(begin, i - begin), &values[c]));
    }
    begin = i + 1;
    if (i == row_ids.size()) break;
    if (!ReadTuple(types, *tuple, absl::MakeSpan(of_row))) {
      return absl::DataLossError(
          absl::StrFormat("row %d: malformed tuple of included columns", row_ids[i]));
    }
    for (size_t c = 0; c < columns.size(); ++c) {
      RETURN_IF_ERROR(values[c].Append(of_row[columns[c]]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Delta::Included(absl::Span<const RowId> row_ids, absl::Span<const size_t> columns,
                             absl::Span<ColumnValues> values) const {
  return AppendIncluded(*this, end_tuple, row_ids, columns, values);
}

absl::Status Delta::SegmentValues(const DeltaSegment& segment, size_t column,
                                  ColumnValues* values) const {
  if (column < base_columns.columns().size()) values->Clear(base_columns.columns()[column].type);
  return AppendIncluded(*this, segment.end_tuple(), segment.rows(), {column},
                        absl::MakeSpan(values, 1));
}

absl::StatusOr<std::shared_ptr<const DeltaSegment>> Delta::AddedEntries() const {
  if (added_entries() == 0) return nullptr;
  if (parts.size() == 1 && parts[0].removed.empty()) return parts[0].segment;
  return WithPhysicalKey(base_run.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    return Guarded("merging the entries of a delta", [&] {
      std::vector<DeltaEntry<Key>> entries;
      for (size_t i = parts.size(); i-- > 0;) MergePart(parts[i], *rows, &entries);
      return DeltaSegment::Build<Key>(entries, base_run.size(), end_tuple);
    });
  });
}

}  // namespace cairn
