#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/batch_index.h"
#include "cairn/column.h"
#include "cairn/index_iterator.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/lookup.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"

namespace cairn {

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
    uint64_t bytes;            // of memory, beyond the run
    uint64_t huge_page_bytes;  // of these
    uint64_t mapped_bytes;     // of the files, besides: stored leaves that are searched there
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
  // What aggregates (AggregateRanges) of each column that was asked for take in memory; under an
  // empty name, what counts of keys take and what changes since the base was built take for all.
  struct Aggregates {
    std::string column;
    uint64_t bytes = 0;
  };
  std::vector<Aggregates> aggregates;
  struct Section {
    std::string file, name;
    uint64_t bytes;
  };
  std::vector<Section> sections;  // of every live file
  // Of an index in shards (sharding.h), in their order; empty for any other. What stands above is
  // of all of them together, `version` its generation, and `sequence` the least of theirs. A row is
  // counted in each shard that has a key of it.
  struct Shard {
    std::string directory;  // within the index's own
    std::string bounds;     // for people: the key range, or which source it is of
    uint64_t rows = 0;
    uint64_t entries = 0;
    SequenceNumber sequence = 0;
    std::string database_id;
  };
  std::vector<Shard> shards;
};

// Rows read from the database for a batch of queries: query i's are [offsets[i], offsets[i + 1]).
struct FetchResult {
  std::vector<uint64_t> offsets;  // [batch + 1], offsets[0] = 0
  std::vector<RowId> row_ids;
  std::vector<uint32_t> shards;  // as FindResult::shards
  StringList primary_keys;
  StringList values;  // of the default column where a row is an entity
  // With a limit: where range i goes on, as FindResult::cursors.
  std::vector<std::string> cursors;
  uint64_t stale = 0;  // entries dropped: the row is gone or no longer matches its query
};

// A secondary index over one column family: a directory of immutable files that is mapped, the
// search structures over it, and what CatchUp added since; or many such directories as one, its
// shards (sharding.h). Thread-safe: every const method may be
// called from any number of threads, and none of them waits for CatchUp or Compact, of which one
// works at a time. A query sees one version, from its beginning to its end.
//
// Lookup, LookupRows, Count and Contains of a KeyQuery take keys by their values, as IndexedDB. All
// else takes physical keys (key_codec.h), which codec() encodes and decodes, in batches: for
// callers that have many, or that route them. Entries are in the order of their keys, those of one
// key in the order of primary keys. A row has one id from a build or compaction to the next. No
// exception leaves; errors are InvalidArgument (a batch of the wrong kind), DataLoss (a damaged
// file), FailedPrecondition (another database), NotFound (no index there).
class SecondaryIndex : public BatchIndex {
 public:
  PhysicalType kind() const final;
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

  // Maps the index in `directory`, which may be one in shards (sharding.h). NotFound where there is
  // none.
  static absl::StatusOr<std::unique_ptr<SecondaryIndex>> Open(const std::string& directory,
                                                              const OpenOptions& options = {});

  virtual const IndexSpec& spec() const = 0;
  virtual const KeyCodec& codec() const = 0;
  // The sequence number that the index is current to.
  virtual SequenceNumber sequence() const = 0;

  // Brings the index up to `source`, a database's state (FromDb, FromDirectory), from that
  // database's write-ahead log. Queries see all of it at once, at the end; after an error, what
  // they saw before, but where only storing it failed (CatchUpOptions::durable), which the next
  // CatchUp or Compact does.
  //
  // FailedPrecondition, with both sequence numbers, where the log does not tell everything since
  // sequence(): it has expired, files were ingested, writes went past it, or it is another
  // database's; and where the database does not provably continue the state that the index has: it
  // was restored from an older copy, lost the end of its log, had the column family dropped and
  // made again, lost a table file with many rows, has another merge operator, or is read through a
  // layer that changes values (DBWithTTL); or if an extractor has another Version(). Build anew
  // then.
  // AlreadyExists where a unique index would get a key twice. A row that cannot be read is an error
  // or passed over, as the spec says. Unavailable while another process writes to the index's
  // directory; FailedPrecondition where one has published another version there.
  virtual absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                                const CatchUpOptions& options) = 0;
  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source) {
    return CatchUp(source, CatchUpOptions());
  }
  // Makes a new base of the base and all that was caught up, in one linear pass, and publishes it
  // as the next version; what is caught up meanwhile is kept beside it. Row ids change. Readers of
  // the version before keep it until they are done; then its files' space is free. Errors as
  // CatchUp's; Cancelled; ResourceExhausted: nothing has changed.
  virtual absl::Status Compact(const CompactOptions& options) = 0;
  absl::Status Compact() { return Compact(CompactOptions()); }
  // Whether Compact would make queries so much faster, or the index so much smaller, that it pays.
  virtual bool ShouldCompact() const = 0;

  // This index as it is now: it stays what it is, row ids included, whatever CatchUp and Compact do
  // to this one, and may outlive it. Its own CatchUp and Compact are FailedPrecondition. Takes no
  // time.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin() const = 0;

  // The primary keys of the rows with these keys, or with keys in this range, and their included
  // columns if LookupOptions::columns asks for them, of one state of the index: lookup.h. If shards
  // are by source, the primary keys of all databases, by (secondary key, shard, primary key).
  // Errors: InvalidArgument, naming the index, the key and what was expected, for keys of the wrong
  // type or number of parts, and for a cursor or column that is none of this index.
  absl::StatusOr<FoundKeys> Lookup(const KeyQuery& keys, const LookupOptions& options = {}) const;
  // The rows themselves, read from `source`, as Fetch does: a row that no longer has such a key is
  // left out. Errors: those of Lookup and Fetch.
  absl::StatusOr<FoundRows> LookupRows(const SnapshotSource& source, const KeyQuery& keys,
                                       const LookupOptions& options = {}) const;
  // The number of entries with each key of a batch, or one number for a range: the number of rows,
  // except that a row counts for each key that it has in the range. Errors: those of Lookup.
  absl::StatusOr<std::vector<uint64_t>> Count(const KeyQuery& keys) const;
  using BatchIndex::Count;
  // Whether any row has each key of a batch, or a key in the range. Errors: those of Lookup.
  absl::StatusOr<std::vector<bool>> Contains(const KeyQuery& keys) const;
  using BatchIndex::Contains;
  // An iterator over the entries of one state of the index: index_iterator.h. If shards are by
  // source, its order is (secondary key, shard, primary key). Errors: see IndexIterator::status.
  IndexIterator NewIterator(const IteratorOptions& options = {}) const;

  // Appends the primary key of each row; OutOfRange for an id that is no row's.
  virtual absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                                   StringList* primary_keys) const = 0;
  // The same of an index in shards (sharding.h), and of any: row i is row_ids[i] of shard
  // shards[i], of shard 0 where `shards` is empty. Of an index in several shards, the method above
  // is InvalidArgument: a RowId alone does not name a row of it.
  virtual absl::Status PrimaryKeys(absl::Span<const uint32_t> shards,
                                   absl::Span<const RowId> row_ids, StringList* primary_keys) const;
  absl::Status PrimaryKeysOf(absl::Span<const GlobalRowId> rows, StringList* primary_keys) const;
  // Of all rows that a query found.
  absl::Status PrimaryKeysOf(const FindResult& matches, StringList* primary_keys) const;

  // Sets *columns to the values that these rows have in the included columns of these names (
  // IndexSpec::include), one a name: value i is row_ids[i]'s, as it is in the latest version. For
  // the values that a query's rows had when it was answered, ask with QueryOptions::columns.
  // InvalidArgument, naming those that there are, for another column; OutOfRange for an id that is
  // no row's.
  virtual absl::Status Columns(absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const = 0;
  // The same of an index in shards, and of any: rows are named as PrimaryKeys takes them.
  virtual absl::Status Columns(absl::Span<const uint32_t> shards, absl::Span<const RowId> row_ids,
                               absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const;
  absl::Status ColumnsOf(absl::Span<const GlobalRowId> rows, absl::Span<const std::string> names,
                         std::vector<ColumnValues>* columns) const;

  // Sets *values to these aggregates of each range (RangeBatch::Equal for keys), one column an
  // aggregate, one value a range (aggregate.h), at a cost that does not depend on how many
  // entries a range has, nor on how many of them came or went since the base was built. What that
  // takes is made when a column is first asked for (OpenOptions::aggregates: before), in time for
  // all entries; Compact makes it anew before its base is queried.
  //
  // InvalidArgument for a column that is not included, or is of a type that the function does not
  // take, and for cursors; OutOfRange, naming the range and the column, for a sum of integers that
  // does not fit its type; ResourceExhausted. Of an index in shards, sums are exact over all of
  // them, and a key that several have counts once.
  virtual absl::Status AggregateRanges(const RangeBatch& ranges,
                                       absl::Span<const Aggregate> aggregates,
                                       std::vector<ColumnValues>* values) const = 0;
  // The same of each range's groups: of its entries with the same values in the leading parts of
  // the key, 1 or more, in the order of keys. Null is a value here. A group costs a search for its
  // end, however many entries it has. With a limit, a range's groups come in pages
  // (AggregateGroupsResult::cursors). Errors as above.
  virtual absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                       absl::Span<const Aggregate> aggregates,
                                       const AggregateGroupsOptions& options,
                                       AggregateGroupsResult* groups) const = 0;

  // Answers the ranges (RangeBatch::Equal for points) with whole rows, read from `source` by sorted
  // MultiGet. Each row's keys are extracted again, and a row that no longer matches its range is
  // dropped and counted, so that a stale index never returns a wrong row. FailedPrecondition where
  // the source is not the index's database and column family.
  virtual absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                             const QueryOptions& options, FetchResult* rows) const = 0;

  // Checks the structure: every file's checksums, order of the entries, row ids in range, and the
  // search structure against the run. DataLoss with the first fault.
  virtual absl::Status Verify() const = 0;
  // And against the database, both ways: every row's entries are in the index, every entry's row
  // has its key. Differences are appended as one line each, at most `max_differences`; OK with no
  // lines means equal.
  virtual absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                     std::vector<std::string>* differences) const = 0;

  virtual absl::StatusOr<IndexStats> Stats() const = 0;
};

}  // namespace cairn
