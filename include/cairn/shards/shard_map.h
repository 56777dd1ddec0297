#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/build.h"
#include "cairn/columns/aggregate.h"
#include "cairn/columns/column_values.h"
#include "cairn/index_spec.h"
#include "cairn/index_stats.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace cairn {

class SecondaryIndex;
struct OpenOptions;

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

// One generation of an index in shards (build.h) as its file SHARDS says it is, with no shard open:
// for programs whose processes serve some of the shards each, which send a batch's queries to those
// that have the answers. An answer is then, for each query, those of its shards in their order: the
// first one's first row, any one's Contains, the sum of counts, and rows one behind the other; but
// a range's rows by source are to be merged by key. Aggregates it puts together itself. Immutable;
// thread-safe.
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
  virtual absl::StatusOr<std::string> AggregateGroupsPart(const SecondaryIndex& shard,
                                                          const RangeBatch& ranges,
                                                          size_t leading_parts,
                                                          absl::Span<const Aggregate> aggregates,
                                                          const GroupOptions& options) const = 0;

  // The values for a batch of `ranges` ranges from what its shards have for the same aggregates, in
  // the shards' order: what SecondaryIndex::AggregateRanges of all would set *values to, where each
  // shard that RouteRanges names has been asked. A key that several shards have counts once.
  // InvalidArgument for what is no part of these aggregates; OutOfRange, naming the range and the
  // column, for a sum that does not fit its type.
  virtual absl::Status CombineRanges(size_t ranges, absl::Span<const Aggregate> aggregates,
                                     absl::Span<const AggregatePart> parts,
                                     std::vector<ColumnValues>* values) const = 0;
  // The same of groups, with the options that the shards were asked with. Groups::cursors are for
  // RangeBatch::after of any shard, and of the index that has all.
  virtual absl::Status CombineGroups(size_t ranges, size_t leading_parts,
                                     absl::Span<const Aggregate> aggregates,
                                     const GroupOptions& options,
                                     absl::Span<const AggregatePart> parts,
                                     Groups* groups) const = 0;
};

}  // namespace cairn
