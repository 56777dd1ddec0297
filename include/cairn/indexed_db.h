#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/index_group.h"
#include "cairn/index_iterator.h"
#include "cairn/index_spec.h"
#include "cairn/lookup.h"
#include "cairn/options.h"
#include "cairn/rocksdb_status.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/stackable_db.h"

namespace cairn {

// What happens to an index that can no longer follow its database.
enum class OnStale : uint8_t {
  kRebuild,    // it is rebuilt in the background
  kKeepStale,  // it stays as it is until RebuildIndex
};

enum class IndexState : uint8_t {
  kBuilding,    // from a snapshot, while writes go on
  kCatchingUp,  // with the writes since that snapshot
  kReady,       // queries see every write that had returned when they began
  kStale,       // it cannot follow; OnStale says whether it is rebuilt
  kFailed,      // it could not be built, or a row cannot be read: IndexInfo::status says why
};
std::string_view IndexStateName(IndexState state);  // "building", "catching up" …

// A change of an index's state, or of the reason for it.
struct IndexStateChange {
  std::string index;
  std::string column_family;
  IndexState before = IndexState::kBuilding;  // equal to `after` if only the reason has changed
  IndexState after = IndexState::kBuilding;
  absl::Status status;  // the reason, as IndexInfo::status
};

// A flush or compaction of an index that has ended.
struct IndexWork {
  std::string index;
  std::string column_family;
  absl::Status status;  // OK; an error, after which it is retried; Cancelled by Close or DropIndex
  absl::Duration duration;
};

// Receives events of an IndexedDB (IndexedDBOptions::listeners), as rocksdb::EventListener does
// those of a database. Each method does nothing unless it is overridden.
//
// Thread safety: one background thread of the IndexedDB makes all calls, one after the other, in
// the order of the events. Cairn holds no lock during a call. A listener may call const methods of
// the IndexedDB, which then show the event or a later state, and methods of the database. It must
// not call Close, nor destroy the IndexedDB: both wait for it. Open and Attach may call it before
// they return. Once Close has returned, no call is made; all events before that were reported. A
// process that exits with the IndexedDB open reports no further events. A slow listener delays
// later calls, and nothing else; waiting events take memory. An exception is ignored.
class IndexListener {
 public:
  virtual ~IndexListener() = default;
  // An index that is created or opened begins as kBuilding, which is not reported, nor is the end
  // of an index by DropIndex or Close.
  virtual void OnStateChanged(const IndexStateChange& /*change*/) {}
  // The changes of an index were written to its directory, or could not be.
  virtual void OnFlushCompleted(const IndexWork& /*flush*/) {}
  // An index was compacted, or could not be.
  virtual void OnCompactionCompleted(const IndexWork& /*compaction*/) {}
};

struct IndexedDBOptions {
  // Holds one directory per index, named after it. Empty: the database's path followed by
  // ".indexes". Created if missing; its parent must exist.
  std::string index_directory;
  // For every index. If open.file_system is null, indexes are in the database's file system. The
  // memory budgets are per index. Results of calibrations are stored in the indexes' directories,
  // with Calibration::kStored as with kStore.
  OpenOptions open;
  // For builds. build.memory_budget is for all indexes that are built together; 0: 1 GiB, or half
  // of the machine's memory if that is less, as the process serves queries and writes at the same
  // time. on_progress, cancelled and file_system are not used: ListIndexes has the progress,
  // DropIndex cancels, and the file system is that of `open`.
  BuildOptions build;
  OnStale on_stale = OnStale::kRebuild;
  // Attach: the caller vouches that all layers between the database that Attach is given and the
  // stored one (DB::GetRootDB) return values as they are stored. Rows are then read from the stored
  // database. Without it, a layer that makes its own iterators, to count reads for example, is
  // refused: such layers, as DBWithTTL, may change values. Writes go through all layers either way.
  bool layers_keep_values = false;

  // How often the log is read in the background. Zero: never, or every half a minute if the
  // database does not archive its log. A query reads what is missing itself. So this bounds how
  // much that is, not how old an answer may be.
  absl::Duration follow_interval = absl::Milliseconds(10);
  // Writes through this object wait while the indexes would need longer than this, at their recent
  // speed, to catch up with the database. So this bounds how long a query waits, and how much
  // memory a burst of writes takes. A write with WriteOptions::no_slowdown returns
  // Status::Incomplete instead of waiting, and writes nothing. Zero: writes never wait.
  absl::Duration max_backlog = absl::Milliseconds(200);
  // How often changes are written to the indexes' directories. The next Open reads the rest from
  // the log. Zero: at Close only.
  absl::Duration flush_interval = absl::Seconds(60);
  // How often indexes are checked for a compaction that pays. Zero: never. One index at a time is
  // compacted.
  absl::Duration compact_interval = absl::Seconds(1);
  uint64_t compact_bytes_per_second = 0;  // written, on average; 0: no limit
  // 0: one for every two cores that this process may use, which leaves the others to queries.
  int compact_threads = 0;

  // Megabytes of log to keep. Open sets DBOptions::WAL_size_limit_MB to this if neither that nor
  // WAL_ttl_seconds is set. After a crash, or a time when nothing followed, an index catches up
  // from this log, and is rebuilt if it does not reach back far enough. The log takes this much
  // disk, plus what is written in ten minutes, as RocksDB checks no more often.
  uint64_t log_retention_megabytes = 1024;
  // Megabytes of log that may be written while an index is built; 0: no limit. The log from the
  // start of a build on is kept until the build ends, by delaying the removal of all obsolete files
  // of the database, table files among them. A build during which more is written ends: the index
  // has failed with ResourceExhausted, and is built when the database is opened again.
  uint64_t build_log_megabytes = 0;

  // Are told states of indexes and the ends of work in the background. Not null.
  std::vector<std::shared_ptr<IndexListener>> listeners;
};

struct CreateIndexOptions {
  // An index of this name and an equal spec, in whatever state, is left as it is, and the call
  // succeeds. WaitUntilReady then returns why it is not ready, if it has failed.
  bool if_not_exists = false;
};

// An index of an IndexedDB, as it is at one moment.
struct IndexInfo {
  IndexSpec spec;
  std::string directory;
  IndexState state = IndexState::kBuilding;
  // Why it is stale or failed. While it is built or catches up: why it is built again.
  absl::Status status;
  double progress = 0;              // kBuilding: the share that is done, from 0 to 1
  SequenceNumber sequence = 0;      // the last one that the index has applied
  SequenceNumber sequence_lag = 0;  // the database's sequence number minus that
  // Of a ready index: time since the lag was last zero; zero while it is. Zero for all others.
  absl::Duration time_lag;
  uint64_t builds = 0;  // all counts: since the database was opened
  uint64_t compactions = 0;
  uint64_t flushes = 0;
  // How the last attempts to flush the index's changes and to compact it ended. After an error, a
  // full disk for example, queries stay correct and the work is retried; until it succeeds, the
  // next Open has more of the log to read.
  absl::Status flush_status;
  absl::Status compact_status;
  // Attempts that failed, except those that were cancelled.
  uint64_t build_failures = 0;
  uint64_t flush_failures = 0;
  uint64_t compaction_failures = 0;
};

// Writes that IndexedDBOptions::max_backlog held up, since the database was opened.
struct BacklogStats {
  uint64_t waits = 0;     // writes that waited
  uint64_t refusals = 0;  // writes with no_slowdown that were Incomplete
  absl::Duration wait_time;
};

// A database whose secondary indexes are always current: a query sees every write that had returned
// when it began, whichever way that was made.
//
//   auto db = cairn::IndexedDB::Open(options, "people.db");
//   (*db)->CreateIndex("city = value.field('|', 2):text");
//   (*db)->WaitUntilReady("city");
//   (*db)->Put({}, "ana", "1990|Ana|Lisbon");
//   auto people = (*db)->LookupRows("city", {"Lisbon", "Oslo"});
//   for (const cairn::FoundRow& person : *people) ... person.primary_key, person.value ...
//
// Errors: what rocksdb::DB declares returns rocksdb::Status, and everything else absl::Status;
// rocksdb_status.h converts each to the other.
//
// Writes are not intercepted: the write-ahead log is followed. So writers pay nothing on their own
// threads, and every commit is seen, in commit order: through this object, through a TransactionDB
// or OptimisticTransactionDB underneath, two-phase commits included, or through any other layer.
// The log is read once for all indexes. A query first waits until what is new has been applied, or
// applies it itself. That is little, as a background thread does so all the time.
//
// Two kinds of writes wait for indexes: those to a column family with a unique index, which are
// checked before they commit; and, briefly, those that cannot be followed.
//
// Unique indexes (IndexSpec::unique):
// - The constraint holds from the first moment that the index is ready until it is dropped, also
//   after a reopening. A write that would give a key to two rows is InvalidArgument.
// - During the first build after CreateIndex nothing is checked: rows with one key fail the build.
//   So do those of writes that began before CreateIndex returned.
// - While the index is rebuilt, catches up, is stale or has failed, a write that puts rows into its
//   column family is TryAgain, as they cannot be checked. Deletions are accepted. DropIndex ends
//   the constraint.
// - Writes of one key wait for each other, also while one waits for a lock of a TransactionDB
//   underneath. All others run side by side. With WriteOptions::no_slowdown they are Incomplete
//   instead of waiting.
// - A row that a compaction filter has removed or changed no longer holds its key.
//
// What cannot be followed:
// - Writes with WriteOptions::disableWAL, to any column family, make every index stale. Such a
//   write through this object first marks the indexes on disk, so that a crash cannot lose that.
// - Ingested files make the column family's indexes stale. In an attached database they make all
//   indexes stale if RocksDB assigns the files sequence numbers (it does if their keys overlap
//   existing ones, or a snapshot is held). So does CreateColumnFamilyWithImport, in any database,
//   if the files have larger sequence numbers than it. So do ClipColumnFamily and DeleteFile. An
//   ingestion, a DeleteFile or a DropColumnFamily that fails before it changes anything leaves the
//   indexes as they are.
// - A log that expired before it was read makes indexes stale. If only Attach could keep it, the
//   removal of obsolete files is delayed until they have been read: about a second longer, and half
//   a minute at most.
// - With enable_pipelined_write or two_write_queues, a write that fails with an I/O error makes
//   every index stale, as the log may have its record. Open adds a listener to the database for
//   that; a database with these options cannot be attached.
// - A batch that RocksDB logs and then applies only in part makes every index stale. RocksDB does
//   so if a batch names the handle of a dropped column family or deletes a range whose end is
//   before its begin: the write is InvalidArgument, and the database takes no more writes until it
//   is opened again. In an attached database such a batch is noticed if it is written through this
//   object, or if an indexed column family has the range.
// - A unique index fails if a write that bypasses this object gives it a key twice.
// - An index fails if a row is written that cannot be read as its spec says, unless that has
//   on_error=skip: the write succeeds, queries are FailedPrecondition. Mend or delete the row, then
//   RebuildIndex. With on_error=skip the row has no entry.
// - A column family that is dropped past this object (an attached database's own DropColumnFamily):
//   its indexes fail, and are rebuilt when the database is attached or opened again with a handle
//   of the new one. RocksDB reports a drop to no one, so the MANIFEST is checked every 10 ms: until
//   the next check, or the first write to a column family that was created since, queries still
//   answer with the dropped one's entries, as its old handle still reads its rows. A drop through
//   this object is seen at once.
// - Column families whose compactions drop or change rows (compaction filters, FIFO compaction)
//   are refused, unless the spec says dropped_rows=ignore: DroppedRows in index_spec.h.
// Not seen at all: rows that DeleteFilesInRange removes; in an attached database, files ingested
// past this object, and batches with the handle of a dropped column family that are written past
// it. Column families with user-defined timestamps or their own comparators cannot be indexed, nor
// can databases with unordered_write, WritePrepared or WriteUnprepared transactions. Indexes of a
// database that is open with paranoid_checks=false, a wal_filter or best_efforts_recovery have
// failed (FailedPrecondition, naming the option), and the next opening without it rebuilds them.
//
// An index that cannot be built or followed for a reason that may pass (a full disk, an I/O error)
// is retried, at first after half a second, later every minute. States of indexes, with reasons,
// are written to the database's info log (DBOptions::info_log), in lines that begin with "[cairn]";
// so are failures to flush or compact, and writes that waited. Neither these lines nor statuses of
// this object name keys or values of rows, unless DBOptions::allow_data_in_errors is set. While the
// database is open, each index's directory is locked: others that would write there get
// Unavailable.
//
// An index proves that a database which is opened again continues the state that it has, and is
// rebuilt otherwise (docs/staying-current.md). If the database does not archive its log, Close
// flushes the indexed column families, as their files then prove it; after a crash the indexes are
// rebuilt.
//
// Closing and destroying this object, destroying handles and closing the database may come in any
// order that RocksDB allows, if a handle of an indexed column family is destroyed through this
// object, or after Close. Close ends all work on indexes. It then closes the database if Open
// opened it, as soon as its last handle is destroyed; an attached one is its owner's to close,
// after that. A process may exit() with all of it open: the threads are ended first.
//
// Thread-safe, as any DB is, also beside Close, as far as indexes are concerned: then, and after
// the object's end, queries and calls are FailedPrecondition. No exception leaves.
class IndexedDB : public rocksdb::StackableDB {
 public:
  // Opens a database and its indexes. Each index catches up from where it is, or is rebuilt as
  // `options.on_stale` says. A failing index is not an error here: see ListIndexes. `handles` are
  // the caller's, to be destroyed before this object.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(
      const rocksdb::DBOptions& db_options, const std::string& path,
      const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles, const IndexedDBOptions& options = {});
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(const rocksdb::Options& db_options,
                                                         const std::string& path,
                                                         const IndexedDBOptions& options = {});
  // The same for a database that is open: a DB, TransactionDB or OptimisticTransactionDB. An index
  // of a column family that is neither the default one nor among `handles` fails.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Attach(
      std::shared_ptr<rocksdb::DB> db, absl::Span<rocksdb::ColumnFamilyHandle* const> handles = {},
      const IndexedDBOptions& options = {});

  // Starts to build the index `spec.name` while writes go on, and returns. The index is kept with
  // the database: if this process ends before it is built, the next Open builds it. `column_family`
  // (null: the default one) must be the spec's. Indexes of one column family that wait to be built
  // are built together, by one scan.
  //
  //   db->CreateIndex("city = value.field('|', 2):text", {.if_not_exists = true});
  //
  // A spec may be given as text (IndexSpec). Without cf=NAME it is of `column_family`.
  //
  // Errors: AlreadyExists if the name is taken; with if_not_exists only if that index has another
  // spec, naming the first difference. InvalidArgument if the text is not a spec, with the offset
  // and what was expected there; if the spec is of another column family; if its name is not 1 to
  // 128 letters, digits, '_', '-' and '.', not starting with '.'; or if compactions of the column
  // family may drop or change rows and the spec does not ignore that (DroppedRows).
  // FailedPrecondition or Unimplemented, naming the option, if the database cannot be followed as
  // it is open: see above. An existing index gets the same errors when its database is opened with
  // such options: it has failed, and is not built until that has changed.
  absl::Status CreateIndex(const IndexSpec& spec,
                           rocksdb::ColumnFamilyHandle* column_family = nullptr,
                           const CreateIndexOptions& options = {}) {
    return CreateIndexes(absl::MakeConstSpan(&spec, 1), column_family, options);
  }
  absl::Status CreateIndex(const IndexSpec& spec, const CreateIndexOptions& options) {
    return CreateIndex(spec, nullptr, options);
  }
  absl::Status CreateIndex(std::string_view spec,
                           rocksdb::ColumnFamilyHandle* column_family = nullptr,
                           const CreateIndexOptions& options = {});
  absl::Status CreateIndex(std::string_view spec, const CreateIndexOptions& options) {
    return CreateIndex(spec, nullptr, options);
  }
  // CreateIndex of several indexes of one column family, which one scan of its rows builds. Either
  // all that do not exist are created or, after an error, none. Errors: those of CreateIndex.
  virtual absl::Status CreateIndexes(absl::Span<const IndexSpec> specs,
                                     rocksdb::ColumnFamilyHandle* column_family = nullptr,
                                     const CreateIndexOptions& options = {}) = 0;
  // Rebuilds an index in the background, also a failed one. NotFound.
  virtual absl::Status RebuildIndex(const std::string& name) = 0;
  // Ends all work on an index, and removes it and its directory. Pinned versions stay usable.
  // NotFound. If its files cannot be removed, the index has failed and may be dropped again.
  virtual absl::Status DropIndex(const std::string& name) = 0;
  // SecondaryIndex::Compact, whether it pays or not. Unavailable while the index is not ready.
  virtual absl::Status CompactIndex(const std::string& name) = 0;
  // Waits while an index is being built or scheduled to be. OK once it is ready; its status if it
  // is stale for good or has failed; DeadlineExceeded; NotFound, also if it is dropped meanwhile.
  virtual absl::Status WaitUntilReady(const std::string& name,
                                      absl::Duration timeout = absl::InfiniteDuration()) = 0;

  // Results of Lookup and LookupRows take memory for all rows found, which for
  // KeyQuery::Everything() is all rows of the index: set LookupOptions::limit, and go on with the
  // cursor.
  //
  // The primary keys of the rows with these keys, or with keys in this range: see lookup.h. One
  // state of the index answers, with all writes that had returned when the call began, included
  // columns among it if LookupOptions::columns asks for them.
  // InvalidArgument for keys of the wrong kind or number of parts, naming the index, the key and
  // what was expected; otherwise errors as of Index and its queries.
  virtual absl::StatusOr<FoundKeys> Lookup(const std::string& index, const KeyQuery& keys,
                                           const LookupOptions& options = {}) const = 0;
  // The rows themselves. One state of the database answers, index and rows, with all writes that
  // had returned when the call began. The index is brought to exactly the state of a snapshot, so
  // that next to a writer this takes some microseconds more than Lookup. With dropped_rows=ignore,
  // rows that compactions dropped or changed are left out if they no longer have such a key.
  virtual absl::StatusOr<FoundRows> LookupRows(const std::string& index, const KeyQuery& keys,
                                               const LookupOptions& options = {}) const = 0;
  // SecondaryIndex::Count and Contains of the state that Lookup would use. Errors: those of Lookup.
  absl::StatusOr<std::vector<uint64_t>> Count(const std::string& index, const KeyQuery& keys) const;
  absl::StatusOr<std::vector<bool>> Contains(const std::string& index, const KeyQuery& keys) const;
  // An iterator over the entries of the state of an index that Lookup would use: index_iterator.h.
  // Errors: those of Lookup, as IndexIterator::status. A template, so that NewIterator({}) is
  // rocksdb::DB's.
  template <typename Name,
            std::enable_if_t<std::is_convertible_v<const Name&, std::string>, int> = 0>
  IndexIterator NewIterator(const Name& index, const IteratorOptions& options = {}) const {
    return NewIndexIterator(index, options);
  }
  using StackableDB::NewIterator;

  // The index by this name, for batches of physical keys. Each query sees all writes that had
  // returned when it began. Two queries may see two states, in which a row may have two row
  // ids: use Pin if row ids are to be passed from one call to another. Queries are Unavailable
  // while the index is built for the first time, and FailedPrecondition, saying why, while it is
  // stale or has failed, once it is dropped, and after Close. NotFound if there is none by that
  // name.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(
      const std::string& name) const = 0;
  // The state of the index that has all writes that have returned by now. It never changes, row ids
  // included, and may outlive the database. Errors as of Index and its queries.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const std::string& name) const = 0;
  // Several indexes at one state, which has all writes that have returned by now: what predicates
  // over them are asked of. Writers do not wait. Errors as of Pin, and of IndexGroup::Create: the
  // indexes are of one column family.
  //
  //   auto people = db->PinGroup({"city", "age"});
  //   (*people)->Count(Predicate("city", "Lisbon") && Predicate("age", KeyQuery::AtLeast(18)));
  virtual absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      absl::Span<const std::string> names) const = 0;
  absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      std::initializer_list<std::string> names) const {
    return PinGroup(absl::MakeConstSpan(names.begin(), names.size()));
  }
  // The state that the index has without waiting or reading the log: for a stale index, also while
  // it is rebuilt, the state that it had last. SecondaryIndex::sequence() says how old it is.
  // Unavailable if there is none.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinStale(
      const std::string& name) const = 0;

  // In the order of their names. If memory runs out, the end of the list is missing. PrometheusText
  // (prometheus.h) has the same as metrics.
  virtual std::vector<IndexInfo> ListIndexes() const = 0;
  virtual BacklogStats Backlog() const = 0;

  // Writes the indexes' changes to their directories, as Close does.
  virtual absl::Status FlushIndexes() = 0;

 protected:
  explicit IndexedDB(std::shared_ptr<rocksdb::DB> db) : StackableDB(std::move(db)) {}

 private:
  IndexIterator NewIndexIterator(const std::string& index, const IteratorOptions& options) const;
};

// Removes all indexes of the database at `path` and the directory that holds them, as
// rocksdb::DestroyDB, which leaves them, removes the database: the two may be called in either
// order. `options` are those of IndexedDB::Open; only index_directory and open.file_system are
// used. OK if there are no indexes.
// Errors: Unavailable if the database or one of the indexes is open; FailedPrecondition if the
// directory holds anything other than indexes. Nothing is removed then. After an I/O error the call
// may be repeated.
absl::Status DestroyIndexes(const std::string& path, const IndexedDBOptions& options = {});

}  // namespace cairn
