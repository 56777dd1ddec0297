#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shards/shard_directory.h"
#include "index/files/file_system.h"

namespace cairn {

// Checks the shards of a plan that stand in a directory under these names, one a shard, and makes
// them its next generation. FailedPrecondition, naming the shard, where one is not what the plan
// wants, or is damaged: nothing is published then.
absl::Status PublishNamed(const ShardPlan& plan, absl::Span<const std::string> names, int threads,
                          ShardDirectory* directory);

// PublishShards, and PublishSources.
absl::Status PublishPlan(const ShardPlan& plan, const std::string& directory, int threads,
                         FileSystem* files);
absl::Status PublishIndexes(absl::Span<const std::string> names, const std::string& directory,
                            int threads, FileSystem* files);

}  // namespace cairn
