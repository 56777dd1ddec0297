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

// The progress of a build or a compaction. At the end of a phase that succeeds, `done` is equal to
// `total`.
struct Progress {
  enum class Phase : uint8_t { kScan, kSort, kWrite };
  Phase phase;
  uint64_t done;   // kScan: rows; otherwise entries of all indexes of the build
  uint64_t total;  // in the unit of `done`; an estimate during kScan
};

// The location of the ordered indexes of an open index.
enum class SearchDevice : uint8_t {
  kCpu,
  kGpu,   // Open fails if no GPU can hold them
  kAuto,  // on the CPU, and also on a GPU if possible; IndexStats::fallback gives the reason if not
};

// The origin of the cost models of the router.
enum class Calibration : uint8_t {
  kStored,  // results stored by kStore on such a machine, if there are any; otherwise kTrials
  kTrials,  // measurements that take some tens of milliseconds, repeated by each Open
  kNone,    // no models: the first of OpenOptions::ordered_indexes executes every batch, unbuffered
  // Like kStored, but stores the results of new measurements in the index directory, for later
  // Opens and other processes. With any other value, Open and queries write no files, so that an
  // index may be on read-only media.
  kStore,
};

// Options for SecondaryIndex::Open.
struct OpenOptions {
  // kFull also compares a prebuilt search structure (BuildOptions::prebuild_search_structure) with
  // the entries.
  VerifyLevel verify = VerifyLevel::kFull;
  // The ordered indexes to keep in memory, as factory strings (ordered_index.h). Empty: cpu:auto,
  // gpu:auto or both, depending on `device`. If all of them are on a GPU, Open adds
  // cpu:sorted_array, which needs no memory, in case the GPU fails. With SearchDevice::kAuto, Open
  // skips a gpu: structure if there is no device or driver, if memory is short, or if the structure
  // does not support the type of the keys. If nothing else is left, Open uses cpu:auto.
  std::vector<std::string> ordered_indexes = {};
  SearchDevice device = SearchDevice::kCpu;
  // The GPUs to use, as CUDA ordinals; an ordinal may be repeated. Empty: the first GPU. For a
  // sharded index, shard i is on devices[i % n], and all devices are searched in parallel. For an
  // unsharded index, every device holds all entries and large batches are split across the devices
  // (docs/multi-gpu.md). If a device is lost, the others take over its work.
  //
  // InvalidArgument: no ordered index is on a GPU, an ordinal is negative, there are more than
  // kMaxGroupMembers ordinals (device/group.h), or a factory string contains device=. A missing
  // device is treated like no device: Unavailable, or the fallback to the CPU.
  std::vector<int> devices = {};
  // Bytes that `auto` structures of this index may use: `host_memory_budget` in host memory,
  // `device_memory_budget` on each GPU. The shards of a sharded index share them. If a structure
  // does not fit, cpu:auto uses a smaller one, down to the mapped files only
  // (docs/tuning.md), and gpu:auto fails with ResourceExhausted. 0 in host memory: half of
  // the memory that is available when the index is opened or compacted, so that several indexes
  // together never take all of it. 0 on a GPU: half of its memory. With 0, there is no hash table
  // for byte-string keys, which needs several times the memory of the tree.
  uint64_t host_memory_budget = 0;
  uint64_t device_memory_budget = 0;
  // Copies keys, row ids and a prebuilt search structure that is searched
  // (BuildOptions::prebuild_search_structure) from the mapped files to memory, in huge pages if the
  // kernel provides them. This memory does not count toward the budgets. With 10 million strings,
  // lookups are 1.3 times as fast for strings of 64 bytes and 1.5 times for 128 bytes; short
  // strings gain little. ResourceExhausted: memory runs out.
  bool load_into_memory = false;
  Calibration calibration = Calibration::kStored;
  // Included columns (IndexSpec::include) whose aggregates Open prepares. Other columns are
  // prepared at their first use. Names that the index does not include are ignored.
  // ResourceExhausted: memory runs out. A column takes 1 to 20 bytes per entry
  // (docs/queries.md).
  std::vector<std::string> aggregates = {};
  int threads = 0;  // for opening and for large batches; 0: one per core available to this process
  // The file system of the index files. Null: the local one, whose files are mapped. Files of any
  // other file system are read completely into memory. It must support writes at any offset
  // (NewRandomRWFile). Every process that opens the index must use the same file system.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// Options for SecondaryIndex::Build and BuildAll.
struct BuildOptions {
  int threads = 0;  // 0: one per core available to this process
  // Bytes of memory for entries that wait to be sorted, for all indexes of the build together. If
  // the entries need more, sorted runs are spilled to the index directories and merged. 0: half of
  // the machine's memory.
  uint64_t memory_budget = 0;
  // Stores the leaves of cpu:packed and their directory in the index file, so that Open maps them
  // instead of building them. This adds 6.5 to 8 bytes per entry of 32-bit keys and 13 to 14 bytes
  // per entry of 64-bit keys, which nearly doubles the file. Compaction and CatchUp keep this
  // setting. The build holds the directory in memory: at most 1.5 bytes per entry of 32-bit keys, 3
  // bytes per entry of 64-bit keys. Ignored for byte-string keys.
  bool prebuild_search_structure = false;
  // Called about ten times per second, never by two threads at the same time. Empty: not called.
  std::function<void(const Progress&)> on_progress;
  // If not null, any thread may set this to true to stop the build, which then returns Cancelled.
  // The flag must outlive the build.
  const std::atomic<bool>* cancelled = nullptr;
  // See OpenOptions::file_system. Spilled runs use it too.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

// The result of a build.
struct BuildReport {
  uint64_t rows = 0;  // in the column family
  uint64_t entries = 0;
  uint64_t rows_skipped = 0;  // could not be read, with ErrorPolicy::kSkip
  uint64_t rows_without_key = 0;
  std::string first_skipped;  // primary key and error of the first skipped row
};

// One index of a build.
struct BuildTarget {
  IndexSpec spec;
  // Created if missing; its parent must exist. An existing index is replaced by its next version.
  std::string directory;
};

// Options for SecondaryIndex::CatchUp.
struct CatchUpOptions {
  uint64_t max_bytes_per_second = 0;  // of log that is read; 0: no limit
  // If true, CatchUp writes the changes to the index directory, so that the next Open has them. If
  // false, the changes are only in memory until Compact() writes them. If the object is destroyed
  // before that, the next CatchUp reads them from the log again. The log is synced in both cases.
  bool durable = true;
  // Accepts a database that cannot be verified to continue the state of the index, for example
  // because the log up to that state was deleted. A proven mismatch is always rejected. Set this
  // only if the database was not restored from a copy and did not lose the end of its log.
  bool skip_identity_check = false;
  const std::atomic<bool>* cancelled = nullptr;  // see BuildOptions::cancelled
};

// The result of CatchUp.
struct CatchUpReport {
  uint64_t changes = 0;    // changes of rows in the log: puts, deletes, merges, range deletions
  uint64_t rows = 0;       // rows that changed, with keys extracted again
  uint64_t log_bytes = 0;  // bytes of log read
  SequenceNumber sequence = 0;
};

// Options for SecondaryIndex::Compact.
struct CompactOptions {
  int threads = 0;                    // 0: one per core available to this process
  uint64_t max_bytes_per_second = 0;  // of keys and row ids written; 0: no limit
  // See BuildOptions::on_progress. There is one phase, kWrite, which counts the rows and the
  // entries of the new base together.
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  // see BuildOptions::cancelled
};

}  // namespace cairn
