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

// Whether a directory holds an index in shards; an error where that cannot be seen.
absl::StatusOr<bool> IsSharded(const std::string& directory, FileSystem* files);

// Opens one: what SecondaryIndex::Open does with such a directory. Errors as ShardSet::Open's.
absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenSharded(const std::string& directory,
                                                            const OpenOptions& options);

// The shards of an index that OpenSharded has opened.
struct OpenShards {
  bool by_source = false;
  ShardVersions versions;  // that answer now
};
// None of any other index. Throws std::bad_alloc.
std::optional<OpenShards> ShardsOf(const SecondaryIndex& index);

}  // namespace cairn
