#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// Reads the rows of `matches`, which answer `ranges` at those versions, from `source`, as FetchRows
// does. Throws std::bad_alloc.
absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const FindResult& matches,
                              FetchResult* rows);

}  // namespace cairn
