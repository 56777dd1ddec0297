#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shards/shard_directory.h"
#include "index/files/file_system.h"

namespace cairn {

// Checks the shards of a plan, which are in a directory under these names, one per shard, and
// publishes them as its next generation. Errors: FailedPrecondition, with the shard, if one does
// not match the plan or is damaged. Then nothing is published.
absl::Status PublishNamed(const ShardPlan& plan, absl::Span<const std::string> names, int threads,
                          ShardDirectory* directory);

// Implement PublishShards and PublishSources.
absl::Status PublishPlan(const ShardPlan& plan, const std::string& directory, int threads,
                         FileSystem* files);
absl::Status PublishIndexes(absl::Span<const std::string> names, const std::string& directory,
                            int threads, FileSystem* files);

}  // namespace cairn
