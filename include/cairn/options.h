#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/types.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

// How far a build or a compaction has come.
struct Progress {
  enum class Phase : uint8_t { kScan, kSort, kWrite };
  Phase phase;
  uint64_t done;   // kScan: rows; else entries, over all indexes of the build
  uint64_t total;  // likewise; an estimate during kScan
};

// Where the ordered indexes of an open index are.
enum class SearchDevice : uint8_t {
  kCpu,
  kGpu,   // Open fails if no GPU can take them
  kAuto,  // on the CPU, and on a GPU too if possible; if not, IndexStats::fallback says why
};

// Where the router's cost models come from.
enum class Calibration : uint8_t {
  kStored,  // the stored results of such a machine (kStore), if the index has some; else kTrials
  kTrials,  // trials of some tens of milliseconds, each time
  kNone,    // none: the first of OpenOptions::ordered_indexes answers, unbuffered
  // As kStored. Results of new trials are stored in the index's directory, for later Opens and
  // other processes. With the others Open and queries write no file, so that an index may be on
  // read-only media.
  kStore,
};

// How SecondaryIndex::Open opens an index.
struct OpenOptions {
  // kFull also compares stored leaves (BuildOptions::prebuild_search_structure) with the entries.
  VerifyLevel verify = VerifyLevel::kFull;
  // The ordered indexes to keep in memory, by factory string (ordered_index.h), one or more. Empty:
  // cpu:auto, gpu:auto or both, as `device` says. If all are on a GPU, cpu:sorted_array, which
  // takes no memory, is added for the case that the GPU fails. With SearchDevice::kAuto, a gpu:…
  // index is left out if there is no device or driver, memory does not suffice, or keys are not of
  // its kind; if it was the only one, cpu:auto takes its place.
  std::vector<std::string> ordered_indexes;
  SearchDevice device = SearchDevice::kCpu;
  // The GPUs, by CUDA ordinal, of which one may be named several times; empty: the first one. Of an
  // index in shards, shard i is on devices[i % n], and all are searched at the same time. Of any
  // other index, each device has all entries, and large batches are split over them
  // (docs/multi-gpu.md); where a device is lost, the others answer.
  // InvalidArgument where no ordered index is on a GPU, as with SearchDevice::kCpu, where a number
  // is negative, for more than kMaxGroupMembers (device/group.h), and beside a factory string
  // with device=. A device that is not there is as no device: Unavailable, or the fallback.
  std::vector<int> devices;
  // Bytes that `auto` may take for the ordered indexes of this index, in memory of the host and of
  // each GPU; beyond them it takes smaller structures (docs/tuning.md), down to the mapped
  // files. 0: half of the memory that is available when the index is opened or compacted, so that
  // several indexes together never take all of it; of a GPU, half of its memory. With 0 there is no
  // hash table of text, which takes several times as much as the tree.
  uint64_t host_memory_budget = 0;
  uint64_t device_memory_budget = 0;
  // Copies keys and row ids, and stored leaves (BuildOptions::prebuild_search_structure) that are
  // searched, from the mapped files into memory, beside the budgets, of huge pages where the kernel
  // gives them. Of 10 million strings, ones of 64 bytes are found 1.3 times as fast then, of 128
  // bytes 1.5 times, short ones hardly faster. ResourceExhausted where memory does not suffice.
  bool load_into_memory = false;
  Calibration calibration = Calibration::kStored;
  // Included columns (IndexSpec::include) whose aggregates shall be ready when Open returns; others
  // are made when they are first asked for. Those that the index does not include are passed over.
  // ResourceExhausted where memory does not suffice: 1 to 20 bytes an entry for each column
  // (docs/queries.md).
  std::vector<std::string> aggregates;
  int threads = 0;  // for opening and for large batches; 0: one per core that this process may use
  // The file system of the index's files. Null: the local one, whose files are mapped. Files of any
  // other are read into memory whole. It must be able to write at any offset (NewRandomRWFile), and
  // everybody who opens the index must use the same one.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// How SecondaryIndex::Build and BuildAll work.
struct BuildOptions {
  int threads = 0;  // 0: one per core that this process may use
  // Bytes of memory for entries that wait to be sorted. Beyond that, sorted runs are spilled into
  // the index's directory and merged. 0: half of the machine's memory.
  uint64_t memory_budget = 0;
  // Stores the leaves of cpu:packed and their directory beside the entries, so that opening the
  // index maps them in place of building them: 6.4 to 13 bytes more an entry, which nearly doubles
  // the file. Merges and catching up keep the choice. Their directory is made in memory, of at most
  // 1.5 bytes an entry of 32-bit keys, 3 of 64-bit keys. Keys of bytes have none.
  bool prebuild_search_structure = false;
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

// How SecondaryIndex::CatchUp reads a log.
struct CatchUpOptions {
  uint64_t max_bytes_per_second = 0;  // of the log; 0: no limit
  // Writes the changes to the index's directory, so that the next Open has them. Otherwise they are
  // lost with the object, unless a Compact() comes first, and are read from the log again. The log
  // is synced either way.
  bool durable = true;
  // Catches up even if nothing proves that the database continues the index's state, because the
  // log up to that state is gone, for example. A database that provably does not is always refused.
  // For callers who know that it has not been restored and has not lost the end of its log.
  bool skip_identity_check = false;
  const std::atomic<bool>* cancelled = nullptr;  // as BuildOptions'
};

// What a CatchUp did.
struct CatchUpReport {
  uint64_t changes = 0;    // of rows, in the log: puts, deletes, merges, range deletions
  uint64_t rows = 0;       // rows whose keys were extracted again
  uint64_t log_bytes = 0;  // bytes of log that were read
  SequenceNumber sequence = 0;
};

// How SecondaryIndex::Compact writes a new base.
struct CompactOptions {
  int threads = 0;                    // 0: one per core that this process may use
  uint64_t max_bytes_per_second = 0;  // of keys and row ids written; 0: no limit
  // As BuildOptions': one phase, kWrite, of the merged base's rows and entries together.
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  // likewise; the compaction then returns Cancelled
};

}  // namespace cairn
