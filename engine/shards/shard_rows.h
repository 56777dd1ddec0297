#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// What rows of several shards have: row i is row_ids[i] of shard shards[i], of shard 0 where
// `shards` is empty. Each reads a shard at a time, and throws std::bad_alloc.

// SecondaryIndex::PrimaryKeys.
absl::Status ShardedPrimaryKeys(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                                absl::Span<const RowId> row_ids, StringList* primary_keys);

// SecondaryIndex::Columns.
absl::Status ShardedColumns(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                            absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                            std::vector<ColumnValues>* columns);

}  // namespace cairn
