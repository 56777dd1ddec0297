#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/fetched_rows.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"
#include "cairn/string_list.h"
#include "cairn/types.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// SecondaryIndex::PrimaryKeys of rows of shards; of shard 0, where `shards` is empty. Throws
// std::bad_alloc.
absl::Status ShardedPrimaryKeys(const ShardVersions& versions, absl::Span<const uint32_t> shards,
                                absl::Span<const RowId> row_ids, PrimaryKeyColumn* primary_keys);

// Reads the rows of `matches`, which answer `ranges` at those versions, from `source`, as FetchRows
// does. Throws std::bad_alloc.
absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const Matches& matches, FetchedRows* rows);

}  // namespace cairn
