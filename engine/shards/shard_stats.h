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

// SecondaryIndex::Stats of one version, and of all shards together. Both throw std::bad_alloc.
IndexStats StatsOf(const IndexVersion& version);
IndexStats ShardedStats(const ShardSet& shards, const ShardVersions& versions);

}  // namespace cairn
