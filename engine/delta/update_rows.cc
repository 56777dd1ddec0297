#include "engine/delta/update_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/rows/row_table_writer.h"
#include "engine/util/sorted_order.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Looks up the rows that the base does not have.
void FindNewRows(const NewRowIds& new_rows, std::vector<UpdateRow>* rows) {
  if (new_rows.empty()) return;
  constexpr size_t kAhead = 8;                           // look-ups in flight
  std::vector<std::pair<UpdateRow*, uint32_t>> missing;  // with the hash of the primary key
  for (UpdateRow& row : *rows) {
    if (row.row == kNoRow) missing.emplace_back(&row, NewRowIds::Hash(row.primary_key));
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i + kAhead < missing.size()) new_rows.Prefetch(missing[i + kAhead].second);
    auto& [row, hash] = missing[i];
    row->row = new_rows.Find(row->primary_key, hash);
  }
}

}  // namespace

absl::Status CheckIsOf(PhysicalType kind, bool has_tuples, const RowUpdates& updates) {
  if (updates.keys.kind() != kind && !updates.keys.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("updates have %s keys, but the index has %s keys",
                        PhysicalTypeName(updates.keys.kind()), PhysicalTypeName(kind)));
  }
  const size_t tuples = has_tuples ? updates.rows() : 0;
  if (updates.tuples.size() == tuples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("updates of %d rows have %d tuples, expected %d", updates.rows(),
                      updates.tuples.size(), tuples));
}

absl::Status CheckColumns(const RowUpdates& updates) {
  const size_t rows = updates.rows();
  if (updates.row_ends.size() != rows || rows >= UINT32_MAX ||
      !std::is_sorted(updates.row_ends.begin(), updates.row_ends.end()) ||
      (rows == 0 ? 0 : updates.row_ends.back()) != updates.keys.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("updates of %d rows: their %d ends must ascend to the number of keys, %d",
                        rows, updates.row_ends.size(), updates.keys.size()));
  }
  if (updates.deleted_from.size() != updates.deleted_to.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("deleted ranges have %d begins, but %d ends",
                                                      updates.deleted_from.size(),
                                                      updates.deleted_to.size()));
  }
  if (!updates.tuples.empty() && updates.tuples.size() != rows) {
    return absl::InvalidArgumentError(
        absl::StrFormat("updates of %d rows have %d tuples", rows, updates.tuples.size()));
  }
  return absl::OkStatus();
}

std::vector<KeyRange> DeletedRanges(const RowUpdates& updates) {
  std::vector<KeyRange> ranges;
  for (size_t i = 0; i < updates.deleted_from.size(); ++i) {
    const KeyRange range(updates.deleted_from[i], updates.deleted_to[i]);
    if (range.first < range.second) ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end());
  size_t kept = 0;
  for (const KeyRange& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].second) {
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, range.second);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

absl::Status FindUpdateRows(const RowUpdates& updates, const RowFinder& base_rows,
                            const NewRowIds& new_rows, std::vector<UpdateRow>* rows) {
  rows->clear();
  RETURN_IF_ERROR(CheckColumns(updates));
  const size_t size = updates.rows();
  std::vector<std::string_view> primary_keys(size);
  for (size_t i = 0; i < size; ++i) primary_keys[i] = updates.primary_keys[i];
  const std::vector<uint32_t> order = SortedOrder<std::string_view>(primary_keys);
  for (size_t i = 0; i < size; ++i) primary_keys[i] = updates.primary_keys[order[i]];
  for (size_t i = 0; i < size; ++i) {
    if (i > 0 && primary_keys[i] == primary_keys[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrFormat("updates name the row '%s' twice", EscapeBytes(primary_keys[i])));
    }
    if (primary_keys[i].size() > RowTableWriter::kMaxPrimaryKeyBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a primary key has %d bytes, expected at most %d", primary_keys[i].size(),
                          RowTableWriter::kMaxPrimaryKeyBytes));
    }
  }

  std::vector<RowPlace> places(size);
  RETURN_IF_ERROR(base_rows.Places(primary_keys, absl::MakeSpan(places)));
  rows->resize(size);
  for (size_t i = 0; i < size; ++i) {
    const RowPlace& place = places[i];
    (*rows)[i] = {place.primary_key, order[i], place.rank, place.found ? place.rank : kNoRow};
  }
  FindNewRows(new_rows, rows);
  return absl::OkStatus();
}

absl::Status ForEachDeletedRow(const RowUpdates& updates, const RowFinder& base_rows,
                               const PositionSet& dead_rows, NewRowOrder* new_rows,
                               const std::vector<UpdateRow>& rows,
                               absl::FunctionRef<void(RowId)> delete_row) {
  const std::vector<KeyRange> ranges = DeletedRanges(updates);
  if (ranges.empty()) return absl::OkStatus();
  std::vector<RowId> updated;
  for (const UpdateRow& row : rows) {
    if (row.row != kNoRow) updated.push_back(row.row);
  }
  std::sort(updated.begin(), updated.end());
  const auto is_updated = [&](RowId row) {
    return std::binary_search(updated.begin(), updated.end(), row);
  };

  std::vector<std::string_view> ends;
  for (const auto& [from, to] : ranges) {
    ends.push_back(from);
    ends.push_back(to);
  }
  std::vector<RowPlace> places(ends.size());
  RETURN_IF_ERROR(base_rows.Places(ends, absl::MakeSpan(places)));
  for (size_t i = 0; i < places.size(); i += 2) {
    const uint64_t end = places[i + 1].rank;
    for (uint64_t row = dead_rows.FirstAbsent(places[i].rank, end); row < end;
         row = dead_rows.FirstAbsent(row + 1, end)) {
      if (!is_updated(static_cast<RowId>(row))) delete_row(static_cast<RowId>(row));
    }
  }

  std::vector<RowId> taken;
  for (const auto& [from, to] : ranges) new_rows->Take(from, to, &taken);
  for (const RowId row : taken) {
    if (is_updated(row)) {
      new_rows->Add(row);
    } else {
      delete_row(row);
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
