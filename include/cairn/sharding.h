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

// An index in shards: many ordinary index directories that are one index. They stand in one
// directory, whose file SHARDS names them; docs/sharding.md tells how they are built and published.
// SecondaryIndex::Open opens such a directory as it opens any, and gives a SecondaryIndex that
// answers everything, with these differences:
//
// - A row is a RowId within a shard: FindResult::shards, Batch::shards, and both as one number, a
//   GlobalRowId. A plain FindFirst, which has no place for the shard, is InvalidArgument.
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

// The queries of a batch by the shards that are to be asked: shard s is asked queries query_of[j],
// begin[s] <= j < begin[s + 1], ascending. A query stands under each shard that may have entries of
// it.
struct ShardQueries {
  std::vector<uint64_t> begin;  // [shards + 1]
  std::vector<uint32_t> query_of;
};

// What one shard has for the aggregates of some ranges of a batch. A view.
struct AggregatePart {
  absl::Span<const uint32_t> queries;  // the ranges that it was asked, by their numbers
  std::string_view results;            // what AggregateRangesPart or AggregateGroupsPart gave
};

// One generation of an index in shards (sharding.h) as its file SHARDS says it is, with no shard
// open: for programs whose processes serve some of the shards each, which send a batch's queries to
// those that have the answers. An answer is then, for each query, those of its shards in their
// order: the first one's first row, any one's Contains, the sum of counts, and rows one behind the
// other; but a range's rows by source are to be merged by key. Aggregates it puts together itself.
// Immutable; thread-safe.
class ShardMap {
 public:
  // Reads the generation that is published now. NotFound where `directory` holds no index in
  // shards; DataLoss; FailedPrecondition for another major version of the format. The file system
  // is as OpenOptions'.
  static absl::StatusOr<std::unique_ptr<ShardMap>> Open(
      const std::string& directory, std::shared_ptr<rocksdb::FileSystem> file_system = nullptr);
  virtual ~ShardMap() = default;

  virtual uint64_t generation() const = 0;  // counts publishes: 1 for the first
  virtual ShardMode mode() const = 0;
  virtual const IndexSpec& spec() const = 0;
  virtual const KeyCodec& codec() const = 0;
  // As they were published.
  virtual const std::vector<IndexStats::Shard>& shards() const = 0;

  // Which shards are to be asked. InvalidArgument for keys of another kind than codec()'s, or more
  // than 2^32 - 1 of them. By source each shard is asked everything.
  virtual absl::Status RouteKeys(KeyBatch keys, ShardQueries* queries) const = 0;
  virtual absl::Status RouteRanges(const RangeBatch& ranges, ShardQueries* queries) const = 0;

  // Opens one shard alone, as SecondaryIndex::Open would open it among the others; budgets are for
  // it alone. Its rows are RowIds of this shard. OutOfRange where there is no such shard; DataLoss,
  // naming it, where it is missing or damaged, is not the index that was published, or has entries
  // beyond its bounds; FailedPrecondition where another generation has been published meanwhile, so
  // that this one's files may be gone.
  virtual absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenShard(
      uint32_t shard, const OpenOptions& options) const = 0;

  // What one shard, which OpenShard opened, has for SecondaryIndex::AggregateRanges (or
  // AggregateGroups) of the ranges that it is asked: exact sums (of integers in 128 bits), counts
  // and extremes, as bytes for CombineRanges (CombineGroups) of the same version of Cairn. They are
  // some 8 to 24 bytes an aggregate of a range or group, and its extremes. By source, where
  // different keys are counted, they have all of each range's, once.
  //
  // Errors as of these methods, but for sums that do not fit; InvalidArgument for an index that
  // OpenShard did not open. A range's number in a message is that among those that are asked here.
  virtual absl::StatusOr<std::string> AggregateRangesPart(
      const SecondaryIndex& shard, const RangeBatch& ranges,
      absl::Span<const Aggregate> aggregates) const = 0;
  virtual absl::StatusOr<std::string> AggregateGroupsPart(
      const SecondaryIndex& shard, const RangeBatch& ranges, size_t leading_parts,
      absl::Span<const Aggregate> aggregates, const AggregateGroupsOptions& options) const = 0;

  // The values for a batch of `ranges` ranges from what its shards have for the same aggregates, in
  // the shards' order: what SecondaryIndex::AggregateRanges of all would set *values to, where each
  // shard that RouteRanges names has been asked. A key that several shards have counts once.
  // InvalidArgument for what is no part of these aggregates; OutOfRange, naming the range and the
  // column, for a sum that does not fit its type.
  virtual absl::Status CombineRanges(size_t ranges, absl::Span<const Aggregate> aggregates,
                                     absl::Span<const AggregatePart> parts,
                                     std::vector<ColumnValues>* values) const = 0;
  // The same of groups, with the options that the shards were asked with.
  // AggregateGroupsResult::cursors are for RangeBatch::after of any shard, and of the index that
  // has all.
  virtual absl::Status CombineGroups(size_t ranges, size_t leading_parts,
                                     absl::Span<const Aggregate> aggregates,
                                     const AggregateGroupsOptions& options,
                                     absl::Span<const AggregatePart> parts,
                                     AggregateGroupsResult* groups) const = 0;
};

}  // namespace cairn
