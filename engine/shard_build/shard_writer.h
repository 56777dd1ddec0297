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

// How WriteShard works.
struct ShardWriterOptions {
  int threads = 1;
  FileSystem* files = FileSystem::Posix();
  const std::atomic<bool>* cancelled = nullptr;
  bool prebuild_search_structure = false;             // as BuildOptions'
  std::function<void(uint64_t entries)> on_progress;  // entries more; from one thread; may be empty
};

// Writes one shard of a plan as an ordinary index into `directory`, from its slices of the
// segments, in one pass and bounded memory: the slices are in (key, primary key) order, and so is
// what they are merged to; the rows that they have get new ids by rank. Errors as BuildShard's.
absl::StatusOr<BuildReport> WriteShard(const Segments& segments, const ShardPlan& plan,
                                       uint32_t shard, const std::string& directory,
                                       const ShardWriterOptions& options);

// Bytes of memory that it takes, about.
uint64_t ShardWriterMemory(const Segments& segments);

}  // namespace cairn
