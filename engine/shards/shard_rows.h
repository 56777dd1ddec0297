#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// Data of rows in several shards: row i is row_ids[i] of shard shards[i], or of shard 0 if `shards`
// is empty. Each reads one shard at a time, and throws std::bad_alloc.

// SecondaryIndex::PrimaryKeys.
absl::Status ShardedPrimaryKeys(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                                absl::Span<const RowId> row_ids, StringList* primary_keys);

// SecondaryIndex::Columns.
absl::Status ShardedColumns(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                            absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                            std::vector<ColumnValues>* columns);

}  // namespace cairn
