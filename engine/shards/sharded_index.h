#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "engine/shards/shard_set.h"
#include "index/files/file_system.h"

namespace cairn {

// Whether a directory contains a sharded index; an error if that cannot be determined.
absl::StatusOr<bool> IsSharded(const std::string& directory, FileSystem* files);

// Opens a sharded index, for SecondaryIndex::Open. Errors: those of ShardSet::Open.
absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenSharded(const std::string& directory,
                                                            const OpenOptions& options);

// The shards of an index that OpenSharded has opened.
struct OpenShards {
  bool by_source = false;
  ShardVersions versions;  // the current versions
};
// Nothing for any other index. Throws std::bad_alloc.
std::optional<OpenShards> ShardsOf(const SecondaryIndex& index);

}  // namespace cairn
