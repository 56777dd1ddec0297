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

// Sizes, counters and structures of an open index.
struct IndexStats {
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;  // in the base
  SequenceNumber sequence = 0;
  uint64_t version = 0;  // 1 for the first build into the directory, then counting
  std::string database_id;
  // A search structure of the index.
  struct OrderedIndex {
    std::string description;
    uint64_t bytes;            // of memory, in addition to the run
    uint64_t huge_page_bytes;  // part of `bytes`
    uint64_t mapped_bytes;     // of the files: a prebuilt search structure that is used in place
  };
  std::vector<OrderedIndex> ordered_indexes;
  std::string fallback;  // why no GPU is used although one was requested (SearchDevice::kAuto);
                         // otherwise empty
  std::vector<RouteStats> routes;
  // The delta: changes that CatchUp has applied since the base was built and that are not compacted
  // yet. `rows` and `entries` above include it.
  struct Delta {
    uint64_t new_rows = 0;         // not in the base
    uint64_t added_entries = 0;    // not in the base
    uint64_t removed_entries = 0;  // of the base
    uint64_t segments = 0;         // sorted runs
    uint64_t bytes = 0;            // of memory
  };
  Delta delta;
  // Memory of the aggregates (AggregateRanges) of each column that was used. The entry with an
  // empty name is the memory for counts of keys and for all changes since the base was built.
  struct Aggregates {
    std::string column;
    uint64_t bytes = 0;
  };
  std::vector<Aggregates> aggregates;
  // A section of a file.
  struct Section {
    std::string file, name;
    uint64_t bytes;
  };
  std::vector<Section> sections;  // of all live files
  // Sharded index (sharding.h): one element per shard, in shard order. Otherwise empty. For a
  // sharded index, the fields above are totals, except that `version` is its generation and
  // `sequence` is the minimum of its shards. A row counts in each shard that contains a key of it.
  struct Shard {
    std::string directory;  // relative to the index directory
    std::string bounds;     // human-readable: the key range, or the database
    uint64_t rows = 0;
    uint64_t entries = 0;
    SequenceNumber sequence = 0;
    std::string database_id;
  };
  std::vector<Shard> shards;
};

// Rows read from the database for a batch of ranges. The rows of range i are those from offsets[i]
// up to, but not including, offsets[i + 1].
struct FetchResult : RowList {
  std::vector<uint64_t> offsets;  // [ranges + 1], offsets[0] = 0
  StringList primary_keys;
  StringList values;  // the default column if the row is a wide-column entity
  // With a limit: the cursor of each range; see FindResult::cursors.
  std::vector<std::string> cursors;
  uint64_t stale = 0;  // dropped entries: the row is gone or no longer matches its range
};

// A secondary index over one column family: a directory of immutable files, which are mapped,
// search structures over them, and the changes that CatchUp has applied. It may also be a sharded
// index (sharding.h).
//
// Thread-safe. Const methods do not wait for CatchUp or Compact; one of these runs at a time. A
// query sees one version of the index from beginning to end.
//
// Lookup, LookupRows, Count and Contains of a KeyQuery take keys by the values of their parts, as
// in IndexedDB. All other methods take batches of physical keys (key_codec.h), which codec()
// encodes and decodes; they are for callers that have many keys or that route them. Entries are
// ordered by key, and entries of one key by primary key. A row keeps its id until the next build or
// compaction.
//
// No function throws. Errors of every method: InvalidArgument for a batch with the wrong type of
// keys; ResourceExhausted if memory runs out; DataLoss for a corrupt file; of queries also
// Cancelled and DeadlineExceeded (QueryOptions). Methods list their further errors.
class SecondaryIndex : public BatchIndex {
 public:
  PhysicalType kind() const final;
  // Builds an index in `directory` and opens it. An existing index is replaced by its next version.
  // Errors: those of BuildAll and Open. On error the directory keeps its previous index.
  static absl::StatusOr<std::unique_ptr<SecondaryIndex>> Build(const SnapshotSource& source,
                                                               const IndexSpec& spec,
                                                               const std::string& directory,
                                                               const BuildOptions& options = {});
  // Builds several indexes in one pass over the rows and returns one report per target. The indexes
  // are published one after the other when all are written. Errors: InvalidArgument for an invalid
  // spec or target and, with ErrorPolicy::kFail, for a row that cannot be read, naming its primary
  // key; AlreadyExists, naming the key, if a unique index would contain it twice; Unavailable while
  // another process writes to a directory; Cancelled; ResourceExhausted, also for more than
  // kMaxEntries rows or entries; those of reading `source`.
  static absl::StatusOr<std::vector<BuildReport>> BuildAll(const SnapshotSource& source,
                                                           absl::Span<const BuildTarget> targets,
                                                           const BuildOptions& options = {});

  // Opens the index in `directory`, which may be sharded (sharding.h). Errors: NotFound if there is
  // no index; DataLoss; FailedPrecondition for another major version of the format; those of the
  // fields of OpenOptions.
  static absl::StatusOr<std::unique_ptr<SecondaryIndex>> Open(const std::string& directory,
                                                              const OpenOptions& options = {});

  // Return the spec, and the codec that encodes and decodes its keys. Valid as long as the index.
  virtual const IndexSpec& spec() const = 0;
  virtual const KeyCodec& codec() const = 0;
  // Returns the sequence number at which the index is current.
  virtual SequenceNumber sequence() const = 0;

  // Brings the index up to the state of a database, `source` (FromDb, FromDirectory), from the
  // write-ahead log of that database. Queries see all changes at once, at the end. On error,
  // queries still see the old state, with one exception: if only persisting failed
  // (CatchUpOptions::durable), the new state is visible and the next CatchUp or Compact persists
  // it.
  //
  // Errors:
  // - FailedPrecondition, with both sequence numbers, if the log does not contain all changes since
  //   sequence(): log files were deleted, files were ingested, or writes bypassed the WAL.
  // - FailedPrecondition if the database cannot be verified to continue the state of the index. It
  //   is another database or was restored from an older copy, it lost the end of its log or a table
  //   file with many rows, or the column family was dropped and created again. The same if the
  //   merge operator has changed, or if a layer that may change values is used for reading
  //   (DBWithTTL).
  // - FailedPrecondition for a range-sharded index: build its next generation.
  // - FailedPrecondition if an extractor has another Version(), if another process has published
  //   another version in the directory, or if the index is pinned.
  // - AlreadyExists if a unique index would contain a key twice.
  // - InvalidArgument if a row cannot be read, with ErrorPolicy::kFail.
  // - Unavailable while another process writes to the directory.
  // - Cancelled, ResourceExhausted.
  //
  // After a FailedPrecondition of the first two kinds, rebuild the index.
  virtual absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                                const CatchUpOptions& options) = 0;
  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source) {
    return CatchUp(source, CatchUpOptions());
  }
  // Merges the delta into a new base in one linear pass and publishes it as the next version.
  // Changes applied concurrently are kept in the new delta. Row ids change. Queries that use the
  // previous version keep it; its files are deleted when no query uses it. Errors: Unavailable and
  // FailedPrecondition as for CatchUp; Cancelled; ResourceExhausted; DataLoss. On error nothing has
  // changed.
  virtual absl::Status Compact(const CompactOptions& options) = 0;
  absl::Status Compact() { return Compact(CompactOptions()); }
  // Returns whether a compaction is worthwhile: the delta has at least 10,000 changed entries and
  // 10% of the entries of the base, or it uses more than half of the remaining row ids. For a
  // sharded index, whether that is true for any shard. Cheap. False for a pinned index.
  virtual bool ShouldCompact() const = 0;

  // Returns the current version of the index. CatchUp and Compact of this index do not change it or
  // its row ids, and it may outlive this index. Its own CatchUp and Compact return
  // FailedPrecondition. Takes constant time. An index from IndexedDB::Index first waits for writes
  // that it has not applied; `cancelled` and `deadline` of `options` limit that wait, and the other
  // options are ignored.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options = {}) const = 0;

  // Returns the primary keys of the rows with these keys, or with keys in this range, and the
  // values of LookupOptions::columns: see lookup.h. The result is from one state of the index. For
  // an index sharded by database, it contains the primary keys of all databases, in (secondary key,
  // shard, primary key) order. Errors: InvalidArgument, naming the index, the key and what was
  // expected, for keys of the wrong type or number of parts, for an invalid cursor and for an
  // unknown column.
  //
  // The second form sets *found and reuses its memory. Views of its former results become invalid;
  // `keys` and `options` must not refer to them. Such a lookup of one key allocates nothing once
  // the memory is large enough, except for columns, a limit, and keys whose entries have changed
  // since the base was built. *found is empty after an error.
  absl::StatusOr<FoundKeys> Lookup(const KeyQuery& keys, const LookupOptions& options = {}) const;
  virtual absl::Status Lookup(const KeyQuery& keys, const LookupOptions& options,
                              FoundKeys* found) const = 0;
  // Returns the rows with these keys, read from `source` as by Fetch: a row that no longer has such
  // a key is omitted. Errors: those of Lookup and Fetch.
  absl::StatusOr<FoundRows> LookupRows(const SnapshotSource& source, const KeyQuery& keys,
                                       const LookupOptions& options = {}) const;
  // Returns the number of entries with each key of a batch, or one number for a range. This is the
  // number of rows, except that a row counts once for each of its keys in the range. Count and
  // Contains use only `cancelled` and `deadline` of `options`. Errors: those of Lookup.
  absl::StatusOr<std::vector<uint64_t>> Count(const KeyQuery& keys,
                                              const LookupOptions& options = {}) const;
  using BatchIndex::Count;
  // Returns whether any row has each key of a batch, or one result for a range. Errors: those of
  // Lookup.
  absl::StatusOr<std::vector<bool>> Contains(const KeyQuery& keys,
                                             const LookupOptions& options = {}) const;
  using BatchIndex::Contains;
  // Returns an iterator over the entries of one state of the index: see index_iterator.h. For an
  // index sharded by database, its order is (secondary key, shard, primary key). Errors: see
  // IndexIterator::status.
  IndexIterator NewIterator(const IteratorOptions& options = {}) const;

  // Appends the primary key of each row: of row ids, or of all rows of a query result. Errors:
  // OutOfRange for an id that does not exist.
  virtual absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const = 0;

  // Sets *columns to the values of the rows in the named included columns (IndexSpec::include), one
  // ColumnValues per name. Values are those of the latest version; to get the values of the version
  // that a query used, query with QueryOptions::columns. Errors: InvalidArgument, listing the
  // included columns, for an unknown name; OutOfRange for an id that does not exist.
  virtual absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                               std::vector<ColumnValues>* columns) const = 0;

  // Sets *values to the aggregates of each range (RangeBatch::Equal for keys): one column per
  // aggregate with one value per range (aggregate.h). The cost does not depend on the number of
  // entries of a range or on the number of changes since the base was built. The supporting
  // structure is built at a column's first use, or by Open if OpenOptions::aggregates names it;
  // this is linear in the entries. Compact rebuilds it before queries use the new base. For a
  // sharded index, sums are exact over all shards, and a key in several shards counts once. Uses
  // only `cancelled` and `deadline` of `options`.
  //
  // Errors: InvalidArgument if a column is not included or its type is not supported by the
  // function, and for cursors; OutOfRange, naming the range and the column, if a sum of integers
  // does not fit its type; ResourceExhausted.
  virtual absl::Status AggregateRanges(const RangeBatch& ranges,
                                       absl::Span<const Aggregate> aggregates,
                                       std::vector<ColumnValues>* values,
                                       const QueryOptions& options = {}) const = 0;
  // Computes aggregates of the groups of each range. A group consists of the entries with equal
  // values in the first `leading_parts` parts of the key, at least 1. Groups are in key order; null
  // is a value here. A group costs one search for its end, whatever its number of entries. With a
  // limit, the groups of a range are returned in pages (AggregateGroupsResult::cursors). Uses
  // `cancelled`, `deadline` and `limit` of `options`; the limit is the number of groups per range.
  // Errors: those of AggregateRanges; InvalidArgument for an invalid `leading_parts` or cursor.
  virtual absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                       absl::Span<const Aggregate> aggregates,
                                       const QueryOptions& options,
                                       AggregateGroupsResult* groups) const = 0;

  // Reads the rows of the ranges (RangeBatch::Equal for keys) from `source`, with sorted MultiGet
  // calls. The keys of each row are extracted again; a row that no longer matches its range is
  // dropped and counted in `stale`, so an outdated index never returns a wrong row. Rows are in the
  // order of Scan; a row with several keys in a range is returned once. QueryOptions::limit counts
  // rows before any are dropped. All rows of the batch are in memory. Errors: those of Scan;
  // FailedPrecondition if `source` is not the database and column family of the index; those of
  // reading it.
  virtual absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                             const QueryOptions& options, FetchResult* rows) const = 0;

  // Reads the index from disk again and verifies it: checksums of all files, the order of the
  // entries, row ids, and the search structures against the entries. For this it opens the index a
  // second time, or one shard after the other, and needs the memory of that until it returns. Like
  // VerifyAgainst, it uses only `cancelled` and `deadline` of `options`. Errors: DataLoss with the
  // first fault.
  virtual absl::Status Verify(const QueryOptions& options = {}) const = 0;
  // Verifies the index against the database: every key of every row must be in the index, and every
  // entry must belong to a row with its key. Reads all rows of `source`. Appends one line per
  // difference to *differences, at most `max_differences`. OK without a line means that no
  // difference was found. Errors: InvalidArgument if `max_differences` is 0; FailedPrecondition if
  // `source` is not the database and column family of the index; those of reading it.
  virtual absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                     std::vector<std::string>* differences,
                                     const QueryOptions& options = {}) const = 0;

  // Returns sizes, counters and structures. Takes some milliseconds, mostly for huge pages
  // (OrderedIndex::huge_page_bytes). Errors: ResourceExhausted if memory runs out.
  virtual absl::StatusOr<IndexStats> Stats() const = 0;
};

}  // namespace cairn
