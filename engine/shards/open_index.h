#pragma once

#include <memory>
#include <optional>

#include "cairn/secondary_index.h"
#include "engine/shards/shard_set.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"

namespace cairn {

// Makes an unsharded SecondaryIndex over the versions that `writer` makes.
std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer);

// Makes a SecondaryIndex over one version of an unsharded index, which never changes. CatchUp and
// Compact return FailedPrecondition.
std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version);

// The versions of an index that a query sees now: one per shard.
struct IndexVersions {
  bool in_shards = false;
  bool by_source = false;  // sharded by database
  ShardVersions versions;
};
// Returns the versions of an index of OverWriter, OverVersion or SecondaryIndex::Open. Nothing for
// any other index. Throws std::bad_alloc.
std::optional<IndexVersions> VersionsOf(const SecondaryIndex& index);

}  // namespace cairn
