#pragma once

#include <cstddef>
#include <string>

#include "cairn/key_codec.h"
#include "cairn/secondary_index.h"
#include "engine/shards/shard_manifest.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// IndexStats::Shard::bounds. Throws std::bad_alloc.
std::string ShardBoundsText(const KeyCodec& codec, const ShardManifest& manifest, size_t shard);

// Adds to the values of `stats` for the same column. Throws std::bad_alloc.
void AddAggregates(const IndexStats::Aggregates& more, IndexStats* stats);

// SecondaryIndex::Stats of all shards together. Throws std::bad_alloc.
IndexStats ShardedStats(const ShardSet& shards, const ShardVersions& versions);

}  // namespace cairn
