#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "engine/shard_build/segment.h"
#include "engine/shard_build/shard_plan.h"
#include "index/files/file_system.h"

namespace cairn {

// Options of WriteShard.
struct ShardWriterOptions {
  int threads = 1;
  FileSystem* files = FileSystem::Posix();
  const std::atomic<bool>* cancelled = nullptr;
  bool prebuild_search_structure = false;             // as in BuildOptions
  std::function<void(uint64_t entries)> on_progress;  // called by one thread with the number of
                                                      // further entries; may be empty
};

// Writes one shard of a plan as an ordinary index to `directory`, from its slices of the segments,
// in one pass and bounded memory. The slices are in (key, primary key) order, and they are merged
// in that order. Their rows get new ids by rank. Errors: those of BuildShard.
absl::StatusOr<BuildReport> WriteShard(const Segments& segments, const ShardPlan& plan,
                                       uint32_t shard, const std::string& directory,
                                       const ShardWriterOptions& options);

// Returns the approximate bytes of memory that WriteShard takes.
uint64_t ShardWriterMemory(const Segments& segments);

}  // namespace cairn
