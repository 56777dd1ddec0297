#pragma once

#include "cairn/index_stats.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// SecondaryIndex::Stats of all shards together. Throws std::bad_alloc.
IndexStats ShardedStats(const ShardSet& shards, const ShardVersions& versions);

}  // namespace cairn
