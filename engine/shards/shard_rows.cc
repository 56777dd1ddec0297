#include "engine/shards/shard_rows.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "absl/strings/str_format.h"
#include "engine/version/fetch.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

absl::Status CheckHalves(RowSpan rows) {
  if (rows.shards().empty()) return absl::OkStatus();
  return CheckOutput(rows.row_ids().size(), rows.shards().size(), "shards");
}

absl::Status NoSuchShard(uint32_t shard, size_t shards) {
  if (shard == ShardOf(kNoGlobalRow)) {
    return absl::OutOfRangeError("row id: expected a row, got kNoGlobalRow");
  }
  return absl::OutOfRangeError(
      absl::StrFormat("row id: expected a shard below %d, got %d", shards, shard));
}

// Sets rows->stale to the number of rows of `matches` that were not returned for their ranges. A
// row counts once per range, however many shards have it.
absl::Status CountStale(const ShardVersions& versions, const FindResult& matches,
                        FetchResult* rows) {
  StringList primary_keys;
  RETURN_IF_ERROR(ShardedPrimaryKeys(versions, matches, &primary_keys));
  std::unordered_set<std::string_view> distinct;  // the rows of range i
  rows->stale = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    distinct.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      distinct.insert(primary_keys[j]);
    }
    rows->stale += distinct.size() - (rows->offsets[i + 1] - rows->offsets[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<absl::Span<const RowId>> RowsOfOneShard(RowSpan rows, std::vector<RowId>* copy) {
  if (rows.shards().empty() && rows.row_ids().size() == rows.size()) return rows.row_ids();
  RETURN_IF_ERROR(CheckHalves(rows));
  copy->clear();
  copy->reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (ShardOf(rows[i]) != 0) return NoSuchShard(ShardOf(rows[i]), 1);
    copy->push_back(RowInShard(rows[i]));
  }
  return *copy;
}

absl::Status GroupByShard(RowSpan rows, size_t shards, std::vector<std::vector<RowId>>* of_shards) {
  RETURN_IF_ERROR(CheckHalves(rows));
  if (shards > 1 && rows.shards().empty() && !rows.row_ids().empty()) {
    return absl::InvalidArgumentError(
        "row ids of several shards: expected the shard of each row, got none");
  }
  of_shards->assign(shards, {});
  for (size_t i = 0; i < rows.size(); ++i) {
    const GlobalRowId row = rows[i];
    if (ShardOf(row) >= shards) return NoSuchShard(ShardOf(row), shards);
    (*of_shards)[ShardOf(row)].push_back(RowInShard(row));
  }
  return absl::OkStatus();
}

void JoinPrimaryKeys(RowSpan rows, const std::vector<StringList>& of_shards,
                     StringList* primary_keys) {
  std::vector<size_t> next(of_shards.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t shard = ShardOf(rows[i]);
    primary_keys->Append(of_shards[shard][next[shard]++]);
  }
}

void JoinColumns(RowSpan rows, const std::vector<std::vector<ColumnValues>>& of_shards,
                 std::vector<ColumnValues>* columns) {
  columns->clear();
  for (const ColumnValues& column : of_shards[0]) columns->emplace_back(column.type());
  std::vector<size_t> next(of_shards.size());
  for (size_t i = 0; i < rows.size();) {
    const uint32_t shard = ShardOf(rows[i]);
    size_t end = i + 1;
    while (end < rows.size() && ShardOf(rows[end]) == shard) ++end;
    for (size_t c = 0; c < columns->size(); ++c) {
      (*columns)[c].AppendFrom(of_shards[shard][c], next[shard], end - i);
    }
    next[shard] += end - i;
    i = end;
  }
}

absl::Status ShardedPrimaryKeys(const ShardVersions& versions, RowSpan rows,
                                StringList* primary_keys) {
  if (versions.size() == 1) {
    std::vector<RowId> copy;
    ASSIGN_OR_RETURN(const absl::Span<const RowId> row_ids, RowsOfOneShard(rows, &copy));
    return versions[0]->delta->PrimaryKeys(row_ids, primary_keys);
  }
  std::vector<std::vector<RowId>> row_ids;
  RETURN_IF_ERROR(GroupByShard(rows, versions.size(), &row_ids));
  std::vector<StringList> of_shards(versions.size());
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(versions[s]->delta->PrimaryKeys(row_ids[s], &of_shards[s]));
  }
  JoinPrimaryKeys(rows, of_shards, primary_keys);
  return absl::OkStatus();
}

absl::Status ShardedColumns(const ShardVersions& versions, RowSpan rows,
                            absl::Span<const std::string> names,
                            std::vector<ColumnValues>* columns) {
  if (versions.size() == 1) {
    std::vector<RowId> copy;
    ASSIGN_OR_RETURN(const absl::Span<const RowId> row_ids, RowsOfOneShard(rows, &copy));
    return versions[0]->Columns(row_ids, names, columns);
  }
  std::vector<std::vector<RowId>> row_ids;
  RETURN_IF_ERROR(GroupByShard(rows, versions.size(), &row_ids));
  std::vector<std::vector<ColumnValues>> of_shards(versions.size());
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(versions[s]->Columns(row_ids[s], names, &of_shards[s]));
  }
  JoinColumns(rows, of_shards, columns);
  return absl::OkStatus();
}

absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const FindResult& matches,
                              const StopCondition& stop, FetchResult* rows) {
  std::vector<FetchResult> of_shard(versions.size());
  rows->stale = 0;
  for (uint32_t s = 0; s < versions.size(); ++s) {
    FindResult part;
    part.offsets.assign(1, 0);
    for (size_t i = 0; i < matches.size(); ++i) {
      for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
        if (matches.shards[j] == s) part.row_ids.push_back(matches.row_ids[j]);
      }
      part.offsets.push_back(part.row_ids.size());
    }
    RETURN_IF_ERROR(FetchRows(*versions[s], source, ranges, part, stop, &of_shard[s]));
    rows->stale += of_shard[s].stale;
  }

  rows->offsets.assign(1, 0);
  rows->row_ids.clear();
  rows->shards.clear();
  rows->primary_keys.Clear();
  rows->values.Clear();
  std::vector<uint64_t> next(versions.size());
  std::unordered_set<std::string_view> returned;  // for range i
  for (size_t i = 0; i < matches.size(); ++i) {
    returned.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      const uint32_t s = matches.shards[j];
      const FetchResult& from = of_shard[s];
      uint64_t& at = next[s];
      // The others are stale, or were returned for an earlier range.
      if (at == from.offsets[i + 1] || from.row_ids[at] != matches.row_ids[j]) continue;
      const uint64_t row = at++;
      // A row with several keys may be in several shards.
      if (!returned.insert(from.primary_keys[row]).second) continue;
      rows->row_ids.push_back(from.row_ids[row]);
      rows->shards.push_back(s);
      rows->primary_keys.Append(from.primary_keys[row]);
      rows->values.Append(from.values[row]);
    }
    rows->offsets.push_back(rows->row_ids.size());
  }
  return rows->stale == 0 ? absl::OkStatus() : CountStale(versions, matches, rows);
}

}  // namespace cairn
