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
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"

namespace cairn {

// A sharded index consists of several ordinary index directories, its shards. They share one
// directory, and its SHARDS file lists them; docs/sharding.md describes how they are built and
// published. SecondaryIndex::Open opens such a directory like any other. The result differs from an
// unsharded index as follows:
//
// - The high half of a GlobalRowId is the number of the row's shard.
// - The index may have more than kMaxEntries entries; each shard has at most kMaxEntries.
// - Entries are ordered by (key, shard, primary key). For a range-sharded index, this is the order
//   by (key, primary key).
//
// BuildSharded builds a sharded index in one process. Alternatively, build it step by step, each
// step in a separate process on any machine that can access the directories:
//
//   ExtractSegment   a range of the rows of a source -> a segment: an ordinary index directory
//   SplitSegments    segments -> a split plan: the bounds of the shards
//   BuildShard       a split plan and the segments -> one shard: an ordinary index directory
//   PublishShards    a split plan and the shards -> the next generation, atomically
//
// The result of a step depends only on its inputs. A step may be killed, repeated, or run twice at
// the same time if each attempt writes to its own directory (ShardDirectoryName). Pass the
// directory of a successful attempt to the next step. Readers see nothing before PublishShards.

// How entries are distributed over shards.
enum class ShardMode : uint8_t {
  // Range-sharded, by (key, primary key): a key is searched in one shard, a range in adjacent
  // shards. A key with many rows may span several shards.
  kKeyRange = 1,
  // Sharded by database, one shard per database: every shard is searched for every key, and each
  // shard can catch up with its own database.
  kSource = 2,
};

// Returns "key_range" or "source".
std::string_view ShardModeName(ShardMode mode);

// Returns a name for the directory of a shard or segment within the index directory, unique for
// each call: "shard-3.1f00c0ffee15900d". PublishShards finds shards by these names and removes
// those that it does not publish.
std::string ShardDirectoryName(uint32_t shard);
std::string SegmentDirectoryName(uint32_t segment);

// Builds an index of the rows of one range, as a segment. An existing index in `directory` is
// replaced by its next version. The ranges of all segments must cover every primary key once; take
// them from one call of SnapshotSource::Split, because its estimates may differ between calls.
// BuildOptions::prebuild_search_structure is ignored. Errors: those of SecondaryIndex::BuildAll.
absl::StatusOr<BuildReport> ExtractSegment(const SnapshotSource& source,
                                           const PrimaryKeyRange& range, const IndexSpec& spec,
                                           const std::string& directory,
                                           const BuildOptions& options);

// Splits the entries of the segments into `shards` shards whose sizes differ by at most one entry,
// and writes the split plan to the file `plan`, atomically. There are fewer shards if there are
// fewer entries. The segments must be of one spec and one state of one database, and must contain
// all ranges, in order. Reads all segments completely.
//
// Errors: FailedPrecondition, naming the segment, if it does not fit the others, is no segment, or
// was changed by CatchUp; AlreadyExists, naming the key, if a unique index would contain it twice;
// DataLoss for a corrupt segment; InvalidArgument if there are no segments, if their rows are not
// in order, or for an invalid number of shards.
absl::Status SplitSegments(absl::Span<const std::string> segments, uint32_t shards,
                           const std::string& plan, const BuildOptions& options);

// Returns the number of shards of a split plan. Errors: NotFound; DataLoss; FailedPrecondition for
// another version of the format.
absl::StatusOr<uint32_t> ShardsOfPlan(const std::string& plan, const BuildOptions& options);

// Builds one shard of a split plan, in one pass over its part of the segments. Uses one bit of
// memory per row of the segments and a few megabytes. Errors: FailedPrecondition if a segment has
// changed since SplitSegments; AlreadyExists, naming the key, if a unique index would contain it
// twice; InvalidArgument if there is no such shard; DataLoss; Cancelled; ResourceExhausted.
absl::StatusOr<BuildReport> BuildShard(const std::string& plan, uint32_t shard,
                                       const std::string& directory, const BuildOptions& options);

// Publishes the shards of a split plan as the next generation of the index in `directory`,
// atomically. `directory` must contain them under names of ShardDirectoryName; of several attempts
// at a shard, any complete one is used. All shards are read and verified first. Afterwards removes
// all shard and segment directories that are not in use, including those of attempts. No attempt
// may still be running. Errors: FailedPrecondition, naming the shard, if it is missing, of another
// plan, or corrupt. On error nothing is published.
absl::Status PublishShards(const std::string& plan, const std::string& directory,
                           const BuildOptions& options);

// Publishes indexes of different databases as an index sharded by database (ShardMode::kSource), in
// the given order. `names` are directories in `directory` with names of ShardDirectoryName. Errors:
// FailedPrecondition, naming the shard, if it is missing or corrupt, has another spec than the
// first shard, or is of the same database as another. On error nothing is published.
absl::Status PublishSources(absl::Span<const std::string> names, const std::string& directory,
                            const BuildOptions& options);

// Options for BuildSharded.
struct ShardedBuildOptions {
  uint32_t shards = 1;
  // The number of row ranges into which the source is split. Each range may have at most
  // kMaxEntries entries. 0: one range per 2^28 rows.
  uint32_t segments = 0;
  BuildOptions build;
};

// Builds all shards of one source in one process, as the next generation of the index in
// `directory`, which is created if missing; its parent must exist. If the build fails or the
// process is killed, the directory keeps its generation; the next build removes what is left.
// Errors: those of the four steps.
absl::StatusOr<BuildReport> BuildSharded(const SnapshotSource& source, const IndexSpec& spec,
                                         const std::string& directory,
                                         const ShardedBuildOptions& options);

// The queries of a batch, by shard: shard s gets the queries query_of[j] with begin[s] <= j <
// begin[s+1], in ascending order. A query is listed for each shard that may contain its entries.
struct ShardQueries {
  std::vector<uint64_t> begin;  // [shards + 1]
  std::vector<uint32_t> query_of;
};

// The partial aggregates of one shard for some ranges of a batch: a view that owns nothing.
struct AggregatePart {
  absl::Span<const uint32_t> queries;  // the indexes of these ranges in the batch
  std::string_view results;            // result of AggregateRangesPart or AggregateGroupsPart
};

// One generation of a sharded index, as its SHARDS file describes it, without open shards. A
// program with several processes, each serving some of the shards, can use it to send the queries
// of a batch to the right shards. Combine the results of a query in shard order: FindFirst returns
// the first row, Contains is true if any shard returns true, counts are added, and lists of rows
// are concatenated. If the index is sharded by database, merge the rows of a range by key instead.
// For aggregates, use the methods below. Immutable and thread-safe.
class ShardMap {
 public:
  // Reads the current generation. `file_system`: see OpenOptions. Errors: NotFound if `directory`
  // does not contain a sharded index; DataLoss; FailedPrecondition for another major version of the
  // format.
  static absl::StatusOr<std::unique_ptr<ShardMap>> Open(
      const std::string& directory, std::shared_ptr<rocksdb::FileSystem> file_system = nullptr);
  virtual ~ShardMap() = default;

  virtual uint64_t generation() const = 0;  // 1 for the first publication, then counting
  // Return how entries are distributed, the spec, and the codec of its keys. Valid as long as this
  // object.
  virtual ShardMode mode() const = 0;
  virtual const IndexSpec& spec() const = 0;
  virtual const KeyCodec& codec() const = 0;
  // The shards, as they were published.
  virtual const std::vector<IndexStats::Shard>& shards() const = 0;

  // Sets *queries to the queries for each shard. If the index is sharded by database, each shard
  // gets all queries. InvalidArgument if the keys are not of the type of codec() or if there are
  // more than 2^32 - 1 queries.
  virtual absl::Status RouteKeys(KeyBatch keys, ShardQueries* queries) const = 0;
  virtual absl::Status RouteRanges(const RangeBatch& ranges, ShardQueries* queries) const = 0;

  // Opens one shard, with the checks that SecondaryIndex::Open makes. The budgets in `options`
  // apply to this shard only. Its rows are RowIds of this shard. Errors: OutOfRange if there is no
  // such shard; DataLoss, naming the shard, if it is missing or corrupt, is not the published
  // index, or has entries outside its bounds; FailedPrecondition if another generation was
  // published in the meantime and the files of this one may be gone.
  virtual absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenShard(
      uint32_t shard, const OpenOptions& options) const = 0;

  // Returns the partial aggregates of one shard for SecondaryIndex::AggregateRanges or
  // AggregateGroups, over the ranges of that shard: exact sums (128 bits for integers), counts,
  // minima and maxima. The result is a byte string for CombineRanges or CombineGroups of the same
  // version of Cairn. Its size is 8 to 24 bytes per aggregate of a range or group, in addition to
  // minima and maxima. To count distinct keys of an index sharded by database, it also contains all
  // keys of each range, once each.
  //
  // Errors: those of AggregateRanges and AggregateGroups, except for sums that do not fit;
  // InvalidArgument if `shard` was not opened by OpenShard. A range number in a message is an index
  // in `ranges`.
  virtual absl::StatusOr<std::string> AggregateRangesPart(
      const SecondaryIndex& shard, const RangeBatch& ranges,
      absl::Span<const Aggregate> aggregates) const = 0;
  virtual absl::StatusOr<std::string> AggregateGroupsPart(const SecondaryIndex& shard,
                                                          const RangeBatch& ranges,
                                                          size_t leading_parts,
                                                          absl::Span<const Aggregate> aggregates,
                                                          const QueryOptions& options) const = 0;

  // Combines partial aggregates into the aggregates of a batch of `ranges` ranges. `parts` are the
  // results of the shards that RouteRanges listed, in shard order, for the same aggregates. Sets
  // *values as SecondaryIndex::AggregateRanges of the whole index would; a key in several shards
  // counts once. Errors: InvalidArgument if a part does not belong to these aggregates; OutOfRange,
  // naming the range and the column, if a sum does not fit its type.
  virtual absl::Status CombineRanges(size_t ranges, absl::Span<const Aggregate> aggregates,
                                     absl::Span<const AggregatePart> parts,
                                     std::vector<ColumnValues>* values) const = 0;
  // Combines groups, as CombineRanges does. `leading_parts` and `options` must be those of the
  // partial results. AggregateGroupsResult::cursors are valid as RangeBatch::after for each shard
  // and for the whole index. InvalidArgument also if parts have results of different ranges under
  // one number.
  virtual absl::Status CombineGroups(size_t ranges, size_t leading_parts,
                                     absl::Span<const Aggregate> aggregates,
                                     const QueryOptions& options,
                                     absl::Span<const AggregatePart> parts,
                                     AggregateGroupsResult* groups) const = 0;
};

}  // namespace cairn
