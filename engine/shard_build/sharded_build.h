#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shards/shard_directory.h"
#include "index/files/file_system.h"

namespace cairn {

// BuildSharded: all steps in one process, which holds the directory's lock meanwhile. Used once.
class ShardedBuild {
 public:
  ShardedBuild(const SnapshotSource& source, const IndexSpec& spec, const std::string& directory,
               const ShardedBuildOptions& options);

  // May throw std::bad_alloc.
  absl::StatusOr<BuildReport> Run();

 private:
  absl::Status Extract(BuildReport* report);
  absl::Status WriteShards();

  const SnapshotSource& source_;
  const IndexSpec& spec_;
  const std::string path_;
  const ShardedBuildOptions& options_;
  const std::shared_ptr<FileSystem> files_;
  const int threads_;
  std::unique_ptr<ShardDirectory> directory_;
  std::vector<std::string> segments_;  // paths
  ShardPlan plan_;
  std::vector<std::string> shards_;  // names
};

}  // namespace cairn
