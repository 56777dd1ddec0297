#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "cairn/progress.h"
#include "cairn/types.h"

namespace cairn {

// How SecondaryIndex::CatchUp reads a log.
struct CatchUpOptions {
  uint64_t max_bytes_per_second = 0;  // of the log; 0: no limit
  // Writes the changes to the index's directory, so that the next Open has them. Otherwise they are
  // lost with the object, unless a Merge comes first, and are read from the log again. The log is
  // synced either way.
  bool durable = true;
  // Catches up even if nothing proves that the database continues the index's state, because the
  // log up to that state is gone, for example. A database that provably does not is always refused.
  // For callers who know that it has not been restored and has not lost the end of its log.
  bool assume_continues = false;
  const std::atomic<bool>* cancelled = nullptr;  // as BuildOptions'
};

// What a CatchUp did.
struct CatchUpReport {
  uint64_t changes = 0;    // of rows, in the log: puts, deletes, merges, range deletions
  uint64_t rows = 0;       // rows whose keys were extracted again
  uint64_t log_bytes = 0;  // bytes of log that were read
  SequenceNumber sequence = 0;
};

// How SecondaryIndex::Merge writes a new base.
struct MergeOptions {
  int threads = 0;                    // 0: one per core that this process may use
  uint64_t max_bytes_per_second = 0;  // of keys and row ids written; 0: no limit
  // As BuildOptions': one phase, kWrite, of the merged base's rows and entries together.
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  // likewise; the merge then returns Cancelled
};

}  // namespace cairn
