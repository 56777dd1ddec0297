#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cairn/index_spec.h"
#include "cairn/progress.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

// How SecondaryIndex::Build and BuildAll work.
struct BuildOptions {
  int threads = 0;  // 0: one per core that this process may use
  // Bytes of memory for entries that wait to be sorted. Beyond that, sorted runs are spilled into
  // the index's directory and merged. 0: half of the machine's memory.
  uint64_t memory_budget = 0;
  // Called from one thread at a time, about ten times a second.
  std::function<void(const Progress&)> on_progress;
  // Set to true by any thread to stop the build, which then returns Cancelled.
  const std::atomic<bool>* cancelled = nullptr;
  // As OpenOptions'. Spilled runs go there, too.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// What a build did.
struct BuildReport {
  uint64_t rows = 0;  // in the column family
  uint64_t entries = 0;
  uint64_t rows_skipped = 0;  // could not be read (ErrorPolicy::kSkip)
  uint64_t rows_without_key = 0;
  std::string first_skipped;  // the first skipped row's primary key and why, for a message
};

// One index of a build: where it goes and what it holds.
struct BuildTarget {
  IndexSpec spec;
  std::string directory;  // created if missing; an index there is replaced by its next version
};

}  // namespace cairn
