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
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/route.h"
#include "cairn/snapshot_source.h"
#include "cairn/string_list.h"
#include "cairn/types.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

// How far a build has come.
struct Progress {
  enum class Phase : uint8_t { kScan, kSort, kWrite };
  Phase phase;
  uint64_t done;   // kScan: rows; else entries, over all indexes of the build
  uint64_t total;  // likewise; an estimate during kScan
};

struct BuildOptions {
  int threads = 0;  // 0: one per core that this process may use
  // Bytes of memory for entries that wait to be sorted; beyond it sorted runs are spilled into the
  // index's directory and merged. 0: half of the machine's memory.
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
  std::string directory;  // made if missing; an index that is there is replaced by its next version
};

// Where the ordered indexes of an open index are.
enum class SearchDevice : uint8_t {
  kCpu,
  kGpu,   // Open fails where a GPU cannot take them
  kAuto,  // on the CPU, and on a GPU besides; where that cannot be, IndexStats says why
};

// Where the router's cost models come from.
enum class Calibration : uint8_t {
  kStored,  // what an earlier Open on such a machine stored in the index's directory; else trials
  kTrials,  // trials of a few milliseconds, stored for the next Open
  kNone,    // none: the first of OpenOptions::ordered_indexes answers, unbuffered
};

struct OpenOptions {
  VerifyLevel verify = VerifyLevel::kFull;
  // The ordered indexes to keep in memory, by factory string (ordered_index.h), one or more. Empty:
  // cpu:auto, gpu:auto or both, as `device` says. Where all are on a GPU, cpu:sorted_array, which
  // takes no memory, stands by for when the GPU fails. With SearchDevice::kAuto one that is named
  // gpu:… is left out, cpu:auto in its place if it is the only one, where there is no device or
  // driver, memory does not suffice, or keys are not of its kind.
  std::vector<std::string> ordered_indexes;
  SearchDevice device = SearchDevice::kCpu;
  // Bytes that `auto` may take for ordered indexes, in memory of the host and of a GPU; beyond them
  // it takes smaller structures, down to the mapped files alone. 0: half of what there is.
  uint64_t host_memory_budget = 0;
  uint64_t device_memory_budget = 0;
  Calibration calibration = Calibration::kStored;
  int threads = 0;  // for opening and for large batches; 0: one per core that this process may use
  // What the index's files are made, written and read through; null: the local file system, which
  // maps them. Any other's are read into memory, all of them; it must be able to write at any
  // offset (NewRandomRWFile), and the same one be used by all who open the index.
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

struct CatchUpOptions {
  uint64_t max_bytes_per_second = 0;  // of the log; 0: no limit
  // Writes what came to the index's directory, so that the next Open has it. Otherwise it is lost
  // with the object, unless a Merge comes before, and read from the log again. The log is synced
  // either way.
  bool durable = true;
  // Catches up also where nothing proves that the database continues the state that the index has:
  // the log is gone up to where that was, say. What is proven otherwise is refused in any case. For
  // who knows that the database has not been restored and has not lost the end of its log.
  bool assume_continues = false;
  const std::atomic<bool>* cancelled = nullptr;  // as BuildOptions'
};

// What a CatchUp did.
struct CatchUpReport {
  uint64_t changes = 0;    // of rows, in the log: puts, deletes, merges, range deletions
  uint64_t rows = 0;       // whose keys were taken anew
  uint64_t log_bytes = 0;  // that were read
  SequenceNumber sequence = 0;
};

struct MergeOptions {
  int threads = 0;                    // 0: one per core that this process may use
  uint64_t max_bytes_per_second = 0;  // of keys and row ids written; 0: no limit
  // As BuildOptions': one phase, kWrite, of the merged base's rows and entries together.
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  // likewise; the merge then returns Cancelled
};

// Rows read from the database for a batch of queries: query i's are [offsets[i], offsets[i + 1]).
struct FetchedRows {
  std::vector<uint64_t> offsets;  // [batch + 1], offsets[0] = 0
  std::vector<RowId> row_ids;
  PrimaryKeyColumn primary_keys;
  StringList values;  // of the default column where a row is an entity
  // With a limit: where range i goes on, as Matches::cursors.
  std::vector<std::string> cursors;
  uint64_t stale = 0;  // entries dropped: the row is gone or no longer matches its query
};

// Bytes, counts and structure of an open index.
struct IndexStats {
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;  // of the base
  SequenceNumber sequence = 0;
  uint64_t version = 0;  // 1 for the first build into the directory, then counting
  std::string database_id;
  struct OrderedIndex {
    std::string description;
    uint64_t bytes;            // beyond the run
    uint64_t huge_page_bytes;  // of these
  };
  std::vector<OrderedIndex> ordered_indexes;
  std::string fallback;  // why no GPU searches where one was asked for (SearchDevice::kAuto)
  std::vector<RouteStats> routes;
  // What CatchUp has added to the base since it was built, and is not merged into it yet. `rows`
  // and `entries` above are of both together.
  struct Delta {
    uint64_t new_rows = 0;         // that the base lacks
    uint64_t added_entries = 0;    // that the base lacks
    uint64_t removed_entries = 0;  // of the base's
    uint64_t segments = 0;         // sorted runs
    uint64_t bytes = 0;            // of memory
  };
  Delta delta;
  struct Section {
    std::string file, name;
    uint64_t bytes;
  };
  std::vector<Section> sections;  // of every live file
};

// A secondary index over one column family: a directory of immutable files that is mapped, the
// search structures over it, and what CatchUp added since. Thread-safe: every const method may be
// called from any number of threads, and none of them waits for CatchUp or Merge, of which one
// works at a time. A query sees one version, from its beginning to its end.
//
// Keys are physical (key_codec.h): codec() encodes and decodes them. Entries are in the order of
// their keys, those of one key in the order of primary keys. A row has one id from a build or merge
// to the next. No exception leaves; errors are InvalidArgument (a batch of the wrong kind),
// DataLoss (a damaged file), FailedPrecondition (another database), NotFound (no index there).
class SecondaryIndex {
 public:
  // Builds an index and opens it. On any error the directory holds what it held before.
  static absl::StatusOr<std::unique_ptr<SecondaryIndex>> Build(const SnapshotSource& source,
                                                               const IndexSpec& spec,
                                                               const std::string& directory,
                                                               const BuildOptions& options = {});
  // Builds several indexes in one pass over the rows; one report a target. Indexes are published
  // one after the other once all are written.
  static absl::StatusOr<std::vector<BuildReport>> BuildAll(const SnapshotSource& source,
                                                           absl::Span<const BuildTarget> targets,
                                                           const BuildOptions& options = {});

  // Maps the index in `directory`. NotFound where there is none.
  static absl::StatusOr<std::unique_ptr<SecondaryIndex>> Open(const std::string& directory,
                                                              const OpenOptions& options = {});

  virtual ~SecondaryIndex() = default;

  virtual const IndexSpec& spec() const = 0;
  virtual const KeyCodec& codec() const = 0;
  // The sequence number that the index is current to.
  virtual SequenceNumber sequence() const = 0;

  // Brings the index up to `source`, a database's state (FromDb, FromDirectory), from that
  // database's write-ahead log. Queries see all of it at once, at the end; after an error, what
  // they saw before, but where only storing it failed (CatchUpOptions::durable), which the next
  // CatchUp or Merge does.
  //
  // FailedPrecondition, with both sequence numbers, where the log does not tell everything since
  // sequence(): it has expired, files were ingested, writes went past it, or it is another
  // database's; and where the database does not provably continue the state that the index has: it
  // was restored from an older copy, lost the end of its log, had the column family dropped and
  // made again, or is read through a layer that changes values (DBWithTTL). Build anew then.
  // AlreadyExists where a unique index would get a key twice. A row that cannot be read is an error
  // or passed over, as the spec says. Unavailable while another process writes to the index's
  // directory; FailedPrecondition where one has published another version there.
  virtual absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                                const CatchUpOptions& options = {}) = 0;
  // Makes a new base of the base and all that was caught up, in one linear pass, and publishes it
  // as the next version; what is caught up meanwhile is kept beside it. Row ids change. Readers of
  // the version before keep it until they are done; then its files' space is free. Errors as
  // CatchUp's; Cancelled; ResourceExhausted: nothing has changed.
  virtual absl::Status Merge(const MergeOptions& options = {}) = 0;
  // Whether Merge would make queries so much faster, or the index so much smaller, that it pays.
  virtual bool MergePays() const = 0;

  // All rows of each key.
  virtual absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const = 0;
  // The lowest row of each key, or kNoRow.
  virtual absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                                 absl::Span<RowId> row_ids) const = 0;
  virtual absl::Status Contains(KeyBatch keys, const QueryOptions& options,
                                absl::Span<bool> found) const = 0;
  // The number of entries in each range.
  virtual absl::Status Count(const RangeBatch& ranges, const QueryOptions& options,
                             absl::Span<uint64_t> counts) const = 0;
  // The rows of each range by (key, primary key), ascending or descending; with a limit,
  // matches->cursors says where to go on (RangeBatch::after).
  virtual absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options,
                            Matches* matches) const = 0;

  // The same with default options.
  absl::Status Find(KeyBatch keys, Matches* matches) const { return Find(keys, {}, matches); }
  absl::Status FindFirst(KeyBatch keys, absl::Span<RowId> row_ids) const {
    return FindFirst(keys, {}, row_ids);
  }
  absl::Status Contains(KeyBatch keys, absl::Span<bool> found) const {
    return Contains(keys, {}, found);
  }
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
    return Count(ranges, {}, counts);
  }

  // The time that a batch of so many queries is predicted to take on the route that it would be
  // given, and the least batch, in queries, whose predicted throughput is nine tenths of the
  // highest: what a larger batch would gain is little. Zero and 1 under Calibration::kNone.
  virtual absl::Duration PredictedTime(Operation operation, size_t queries) const = 0;
  virtual size_t BestBatch(Operation operation) const = 0;

  // Appends the primary key of each row; OutOfRange for an id that is no row's.
  virtual absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                                   PrimaryKeyColumn* primary_keys) const = 0;

  // Answers the ranges (RangeBatch::Equal for points) with whole rows, read from `source` by sorted
  // MultiGet. Each row's keys are extracted again, and a row that no longer matches its range is
  // dropped and counted, so that a stale index never returns a wrong row. FailedPrecondition where
  // the source is not the index's database and column family.
  virtual absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                             const QueryOptions& options, FetchedRows* rows) const = 0;

  // Checks the structure: every file's checksums, order of the entries, row ids in range, and the
  // search structure against the run. DataLoss with the first fault.
  virtual absl::Status Verify() const = 0;
  // And against the database, both ways: every row's entries are in the index, every entry's row
  // has its key. Differences are appended as one line each, at most `most`; OK with no lines means
  // equal.
  virtual absl::Status VerifyAgainst(const SnapshotSource& source, size_t most,
                                     std::vector<std::string>* differences) const = 0;

  virtual absl::StatusOr<IndexStats> Stats() const = 0;
};

}  // namespace cairn
