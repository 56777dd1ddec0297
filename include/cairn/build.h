#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/absl_forward.h"
#include "cairn/index_spec.h"
#include "cairn/progress.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

class SnapshotSource;
struct PrimaryKeyRange;

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
  bool store_leaves = false;
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

// An index in shards: many ordinary index directories that are one index. They stand in one
// directory, whose file SHARDS names them; docs/sharding.md tells how they are built and published.
// SecondaryIndex::Open opens such a directory as it opens any, and gives a SecondaryIndex that
// answers everything, with these differences:
//
// - A row is a RowId within a shard: Matches::shards, Batch::shards, and both as one number, a
//   WideRowId. A plain FindFirst, which has no place for the shard, is InvalidArgument.
// - There may be more than kMaxEntries entries in all; each shard has at most so many.
// - The order of entries is (key, source, primary key): that of (key, primary key) where there is
//   one source.
//
// How one is built: at once by BuildSharded, or step by step, each step in a process of its own on
// any machine that sees the directories.
//
//   ExtractSegment   a range of a source's rows -> a segment: an ordinary index directory
//   SplitSegments    segments -> a plan: where the shards' bounds are
//   BuildShard       a plan and the segments -> one shard: an ordinary index directory
//   PublishShards    a plan and the shards -> the next generation, at one instant
//
// Each step depends on its inputs alone, writes to a place of its own, and may be killed, repeated
// and run twice at a time: give each attempt a directory that no other has (ShardDirectoryName),
// and hand on the one that ended well. Nothing is seen before PublishShards.

// How entries are spread over shards.
enum class ShardMode : uint8_t {
  // By ranges of (key, primary key): a key is searched in one shard, and a range in neighbours. A
  // key with many rows may span several.
  kKeyRange = 1,
  // By the database that they come from, a shard each: every shard is asked for every key, and each
  // can catch up with its own database.
  kSource = 2,
};

// "key_range" or "source".
std::string_view ShardModeName(ShardMode mode);

// What a shard or a segment is to be called within an index's directory, different at each call:
// "shard-3.1f00c0ffee15900d". PublishShards looks for shards by these names, and removes those that
// it does not publish.
std::string ShardDirectoryName(uint32_t shard);
std::string SegmentDirectoryName(uint32_t segment);

// Builds an index of the rows of one range. All ranges together are those of one call of
// SnapshotSource::Split, say, whose estimates may differ from one call to the next. An index there
// is replaced by its next version. A segment has no stored leaves, whatever the options say. Errors
// as SecondaryIndex::BuildAll's.
absl::StatusOr<BuildReport> ExtractSegment(const SnapshotSource& source,
                                           const PrimaryKeyRange& range, const IndexSpec& spec,
                                           const std::string& directory,
                                           const BuildOptions& options);

// Cuts what the segments hold into `shards` of equal size, to an entry, and writes the plan to a
// file, whole or not at all. There are fewer shards where there are fewer entries. Segments are of
// one spec and one state of one database, and their ranges are all that there are, in the order
// given.
//
// FailedPrecondition, naming the segment, where one is not, or has been caught up; AlreadyExists,
// naming the key, where a unique index would have it twice; DataLoss for a damaged one.
absl::Status SplitSegments(absl::Span<const std::string> segments, uint32_t shards,
                           const std::string& plan, const BuildOptions& options);

// How many shards a plan has.
absl::StatusOr<uint32_t> ShardsOfPlan(const std::string& plan, const BuildOptions& options);

// Builds one shard of a plan, in one pass over its part of the segments. Memory: a bit for each row
// of the segments, and a few megabytes. FailedPrecondition where a segment is not the one that was
// split; AlreadyExists as above.
absl::StatusOr<BuildReport> BuildShard(const std::string& plan, uint32_t shard,
                                       const std::string& directory, const BuildOptions& options);

// Makes the shards of a plan the next generation of the index in `directory`, in which they stand
// under names of ShardDirectoryName; of several attempts at one it takes any. Then removes what is
// no longer named, attempts included: none may be under way. FailedPrecondition, and nothing is
// published, where a shard is missing, is of another plan, or is damaged.
absl::Status PublishShards(const std::string& plan, const std::string& directory,
                           const BuildOptions& options);

// Makes indexes of different databases, which stand in `directory` under names of
// ShardDirectoryName, an index in shards by source (ShardMode::kSource), in the order given.
// FailedPrecondition, and nothing is published, where one is missing or damaged, or two differ in
// their spec or are of one database.
absl::Status PublishSources(absl::Span<const std::string> names, const std::string& directory,
                            const BuildOptions& options);

// How BuildSharded works, besides BuildOptions.
struct ShardedBuildOptions {
  uint32_t shards = 1;
  // Into how many ranges of rows the source is cut; each has at most kMaxEntries entries. 0: one
  // for 2^28 rows.
  uint32_t segments = 0;
  BuildOptions build;
};

// All steps in one process, of one source: the next generation of the index in `directory`, which
// is made if missing. On any error, and when the process is killed, the directory holds the
// generation that it held before; what is left of an attempt is removed by the next one.
absl::StatusOr<BuildReport> BuildSharded(const SnapshotSource& source, const IndexSpec& spec,
                                         const std::string& directory,
                                         const ShardedBuildOptions& options);

}  // namespace cairn
