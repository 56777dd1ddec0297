#include "engine/shards/shard_rows.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// Sets (*rows)[s] to the rows of shard s, in order.
absl::Status GroupByShard(size_t count, absl::Span<const uint32_t> shards,
                          absl::Span<const RowId> row_ids, std::vector<std::vector<RowId>>* rows) {
  RETURN_IF_ERROR(CheckOutput(row_ids.size(), shards.size(), "shards"));
  rows->assign(count, {});
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i] >= count) {
      return absl::OutOfRangeError(
          absl::StrFormat("a row is in shard %d, but there are %d shards", shards[i], count));
    }
    (*rows)[shards[i]].push_back(row_ids[i]);
  }
  return absl::OkStatus();
}

// Whether all rows are of shard 0 without explicit shards.
bool AreOfOne(const ShardVersions& versions, absl::Span<const uint32_t> shards,
              absl::Span<const RowId> row_ids) {
  return shards.empty() && (versions.size() == 1 || row_ids.empty());
}

}  // namespace

absl::Status ShardedPrimaryKeys(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                                absl::Span<const RowId> row_ids, StringList* primary_keys) {
  if (AreOfOne(versions, shards, row_ids)) {
    return versions[0]->delta->PrimaryKeys(row_ids, primary_keys);
  }
  std::vector<std::vector<RowId>> rows;
  RETURN_IF_ERROR(GroupByShard(versions.size(), shards, row_ids, &rows));
  std::vector<StringList> keys(versions.size());
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(versions[s]->delta->PrimaryKeys(rows[s], &keys[s]));
  }
  std::vector<size_t> next(versions.size());
  for (const uint32_t shard : shards) primary_keys->Append(keys[shard][next[shard]++]);
  return absl::OkStatus();
}

absl::Status ShardedColumns(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                            absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                            std::vector<ColumnValues>* columns) {
  if (AreOfOne(versions, shards, row_ids)) return versions[0]->Columns(row_ids, names, columns);
  std::vector<std::vector<RowId>> rows;
  RETURN_IF_ERROR(GroupByShard(versions.size(), shards, row_ids, &rows));
  std::vector<std::vector<ColumnValues>> values(versions.size());
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(versions[s]->Columns(rows[s], names, &values[s]));
  }
  columns->clear();
  for (const ColumnValues& column : values[0]) columns->emplace_back(column.type());
  std::vector<size_t> next(versions.size());
  for (size_t i = 0; i < shards.size();) {
    const uint32_t shard = shards[i];
    size_t end = i + 1;
    while (end < shards.size() && shards[end] == shard) ++end;
    for (size_t c = 0; c < columns->size(); ++c) {
      (*columns)[c].AppendFrom(values[shard][c], next[shard], end - i);
    }
    next[shard] += end - i;
    i = end;
  }
  return absl::OkStatus();
}

}  // namespace cairn
