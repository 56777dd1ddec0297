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
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/utilities/transaction_db.h"

namespace cairn {

// The treatment of an index that can no longer follow its database.
enum class OnStale : uint8_t {
  kRebuild,    // rebuild it in the background
  kKeepStale,  // keep it stale until RebuildIndex is called
};

// The state of a live index. docs/operations.md has the transitions and what to do in each state.
enum class IndexState : uint8_t {
  kBuilding,    // from a snapshot, while writes continue
  kCatchingUp,  // with the writes since that snapshot
  kReady,       // queries see every write that returned before they began
  kStale,       // cannot follow the database; OnStale defines whether it is rebuilt
  kFailed,      // could not be built, or a row cannot be read: see IndexInfo::status
};
// Returns "building", "catching up", "ready", "stale" or "failed".
std::string_view IndexStateName(IndexState state);

// A change of an index's state, or of the reason for it.
struct IndexStateChange {
  std::string index;
  std::string column_family;
  IndexState before = IndexState::kBuilding;  // equal to `after` if only the reason has changed
  IndexState after = IndexState::kBuilding;
  absl::Status status;  // the reason; see IndexInfo::status
};

// A flush or compaction of an index that has ended.
struct IndexWork {
  std::string index;
  std::string column_family;
  absl::Status status;  // OK; an error, after which it is retried; Cancelled by Close or DropIndex
  absl::Duration duration;
};

// Receives the events of an IndexedDB (IndexedDBOptions::listeners), like rocksdb::EventListener
// for a database. The default of each method does nothing.
//
// Thread safety: one background thread of the IndexedDB makes all calls, one after the other, in
// the order of the events. Cairn holds no lock during a call. A listener may call const methods of
// the IndexedDB, which then show the event or a later state, and methods of the database. It must
// not call Close or destroy the IndexedDB: both wait for it. Open and Attach may call it before
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

// Options of IndexedDB::Open and Attach.
struct IndexedDBOptions {
  // The directory that contains one directory per index, named after it. Empty: the path of the
  // database followed by ".indexes". Created if missing; its parent must exist.
  std::string index_directory = {};
  // Options for opening every index. If open.file_system is null, indexes use the file system of
  // the database. The memory budgets are per index. Calibration::kStored has the effect of kStore:
  // the results of measurements are stored in the index directories.
  OpenOptions open;
  // Options for builds. build.memory_budget is for all indexes that are built together; 0: 1 GiB,
  // or half of the machine's memory if that is less, because the process serves queries and writes
  // at the same time. on_progress, cancelled and file_system are not used: ListIndexes returns the
  // progress, DropIndex cancels a build, and the file system is that of `open`.
  BuildOptions build;
  OnStale on_stale = OnStale::kRebuild;
  // For Attach: states that all layers between the attached database and the stored one
  // (DB::GetRootDB) return values as they are stored. Rows are then read from the stored database.
  // If false, a layer that creates its own iterators, for example to count reads, is rejected,
  // because such layers may change values (DBWithTTL). Writes pass through all layers in either
  // case.
  bool layers_keep_values = false;

  // The interval at which a background thread reads the log. Zero: never, or every half minute if
  // the database does not archive its log. Up to 160 ms while nothing is written. A query reads the
  // rest of the log itself, so this limits how much it has to read, not how old its result may be.
  absl::Duration follow_interval = absl::Milliseconds(10);
  // Writes through this object wait while the indexes need longer than this, at their recent speed,
  // to catch up with the database. While they need more than half of this, each write takes up to
  // 10 ms longer, so that writers slow down to the speed of the indexes, and rarely stop. This
  // limits how long a query waits, and how much memory a burst of writes takes. A write with
  // WriteOptions::no_slowdown is not slowed down; if it would have to wait, it writes nothing and
  // returns Status::Incomplete. Zero: writes never wait.
  absl::Duration max_backlog = absl::Milliseconds(200);
  // The interval at which changes are written to the index directories. The next Open reads later
  // changes from the log. Zero: only at Close.
  absl::Duration flush_interval = absl::Seconds(60);
  // The interval at which indexes are checked for a worthwhile compaction
  // (SecondaryIndex::ShouldCompact). Zero: never. One index at a time is compacted.
  absl::Duration compact_interval = absl::Seconds(1);
  uint64_t compact_bytes_per_second = 0;  // average rate of writes; 0: no limit
  // 0: one per two cores available to this process, which leaves the others to queries.
  int compact_threads = 0;

  // Megabytes of log to keep. Open sets DBOptions::WAL_size_limit_MB to this if neither that nor
  // WAL_ttl_seconds is set. After a crash, or after a time without Cairn, an index catches up from
  // this log; if the log does not reach back far enough, the index is rebuilt. The log uses this
  // much disk space, plus what is written in ten minutes, because RocksDB does not check more
  // often.
  uint64_t log_retention_megabytes = 1024;
  // Megabytes of log that may be written during the build of an index; 0: no limit. The log from
  // the start of a build is kept until the build ends. For that, the removal of all obsolete files
  // of the database is delayed, including table files. If more is written, the build ends, the
  // index fails with ResourceExhausted, and it is built when the database is opened again.
  uint64_t build_log_megabytes = 0;

  // Receive changes of index states and the results of background work. Must not be null.
  std::vector<std::shared_ptr<IndexListener>> listeners = {};
};

// Options for CreateIndex and CreateIndexes.
struct CreateIndexOptions {
  // If an index with this name and an equal spec exists, in any state, it is left unchanged and the
  // call succeeds. If that index has failed, WaitUntilReady returns the reason.
  bool if_not_exists = false;
};

// The state of an index of an IndexedDB at one moment.
struct IndexInfo {
  IndexSpec spec;
  std::string directory;
  IndexState state = IndexState::kBuilding;
  // Why the index is stale or failed. While it is built or catches up: why it is rebuilt.
  absl::Status status;
  double progress = 0;              // kBuilding: the completed share, from 0 to 1
  SequenceNumber sequence = 0;      // the last sequence number that the index has applied
  SequenceNumber sequence_lag = 0;  // the sequence number of the database minus `sequence`
  // Time since the index last had zero lag. Zero if it is current or not kReady.
  absl::Duration time_lag;
  uint64_t builds = 0;  // all counts: since the database was opened
  uint64_t compactions = 0;
  uint64_t flushes = 0;
  // Results of the last attempts to flush the changes of the index and to compact it. After an
  // error, for example a full disk, queries stay correct and the work is retried. Until it
  // succeeds, the next Open has to read more of the log.
  absl::Status flush_status;
  absl::Status compact_status;
  // Attempts that failed, except those that were cancelled.
  uint64_t build_failures = 0;
  uint64_t flush_failures = 0;
  uint64_t compaction_failures = 0;
};

// Writes that IndexedDBOptions::max_backlog held up, since the database was opened.
struct BacklogStats {
  uint64_t waits = 0;     // writes that waited or were slowed down
  uint64_t refusals = 0;  // writes with no_slowdown that were Incomplete
  absl::Duration wait_time;
};

// A database whose secondary indexes are always current: a query sees every write that returned
// before it began, whichever object made the write.
//
//   auto db = cairn::IndexedDB::Open(options, "people.db");
//   (*db)->CreateIndex("city = value.field('|', 2):text");
//   (*db)->WaitUntilReady("city");
//   (*db)->Put({}, "ana", "1990|Ana|Lisbon");
//   auto people = (*db)->LookupRows("city", {"Lisbon", "Oslo"});
//   for (const cairn::FoundRow& person : *people) ... person.primary_key, person.value ...
//
// Thread safety: thread-safe, like any DB, also during Close. After Close, queries and other index
// calls return FailedPrecondition.
//
// Errors: methods of rocksdb::DB return rocksdb::Status, all others absl::Status; rocksdb_status.h
// converts between them. No method throws.
//
// How it works: the indexes follow the write-ahead log. Every commit is seen, in commit order,
// whether it was made through this object, through a TransactionDB or OptimisticTransactionDB
// underneath (including two-phase commits), or through another layer. The log is read once for all
// indexes, by a background thread. A query first waits for the changes that are not applied yet, or
// applies them itself.
//
// Writes wait for indexes in three cases: if the lag of the indexes exceeds
// IndexedDBOptions::max_backlog; if the column family has a unique index, because such writes are
// checked before they commit; and, briefly, if the write cannot be followed.
//
// Unique indexes (IndexSpec::unique):
// - The constraint holds from the first moment at which the index is ready until it is dropped,
//   also after the database is reopened. A write that would give a key to two rows returns
//   InvalidArgument.
// - During the first build after CreateIndex nothing is checked: rows with the same key fail the
//   build, including rows of writes that began before CreateIndex returned.
// - While the index is rebuilt, catches up, is stale or has failed, a write that puts rows into its
//   column family returns TryAgain, because the rows cannot be checked. This includes an index
//   whose column family has no handle in Attach. Deletions are accepted. DropIndex ends the
//   constraint.
// - The constraint is not checked while the files of the index are so damaged that its spec cannot
//   be read.
// - Writes of the same key wait for each other, also while one of them waits for a lock of a
//   TransactionDB underneath. Other writes run in parallel. With WriteOptions::no_slowdown, a write
//   that would wait returns Incomplete.
// - A row that a compaction filter has removed or changed no longer holds its key.
//
// Changes that cannot be followed:
// - Writes with WriteOptions::disableWAL, to any column family, make every index stale if the
//   database is attached or is a TransactionDB or OptimisticTransactionDB, or if they are made
//   through another object of the database. Such a write through this object of an attached
//   database first marks the indexes on disk, so that a crash cannot lose that fact.
// - Ingested files make the indexes of the column family stale. In an attached database they make
//   all indexes stale if RocksDB assigns sequence numbers to the files, which it does if their keys
//   overlap existing ones or if a snapshot is held. CreateColumnFamilyWithImport makes all indexes
//   stale, in any database, if the files have larger sequence numbers than it. ClipColumnFamily and
//   DeleteFile make indexes stale, too. An ingestion, DeleteFile or DropColumnFamily that fails
//   before it changes anything leaves the indexes as they are. During such a call through this
//   object, queries of these indexes return Unavailable. Until an ingestion through another object
//   returns, queries may miss its rows.
// - A log file that expired before it was read makes indexes stale. If the database does not
//   archive its log, Attach delays the removal of obsolete files until they have been read: for
//   about a second longer, and at most half a minute.
// - With enable_pipelined_write or two_write_queues, a write that fails with an I/O error makes
//   every index stale, because the log may contain its record. Open adds a listener to the database
//   to detect this; a database with these options cannot be attached.
// - A batch that RocksDB logs and then applies only in part makes every index stale. RocksDB does
//   so if a batch contains the handle of a dropped column family, or deletes a range whose end is
//   before its begin: the write returns InvalidArgument, and the database accepts no more writes
//   until it is opened again. In an attached database such a batch is noticed if it is written
//   through this object, or if an indexed column family has the range.
// - A unique index fails if a write that bypasses this object gives a key to two rows.
// - A row that cannot be read as its spec requires fails the index, unless the spec has
//   on_error=skip: the write succeeds, and queries return FailedPrecondition. Fix or delete the
//   row, then call RebuildIndex. With on_error=skip, the row has no entry.
// - If a column family is dropped other than through this object, its indexes fail. They are
//   rebuilt when the database is attached or opened again with a handle of the new column
//   family. RocksDB does not report such a drop, so the MANIFEST is watched. Within 10 ms, or until
//   the first write to a column family created since, queries still return entries of the dropped
//   column family, as its old handle still reads its rows. A drop through this object takes effect
//   at once.
// - A column family whose compactions drop or change rows (compaction filters, FIFO compaction) is
//   rejected, unless the spec has dropped_rows=ignore (DroppedRows in index_spec.h).
//
// Changes that are not detected: rows removed by DeleteFilesInRange, whose older versions
// LookupRows may return; in an attached database, files ingested other than through this object,
// and batches with the handle of a dropped column family that are written other than through this
// object.
//
// Unsupported: column families with user-defined timestamps or a custom comparator, and databases
// with unordered_write, or with WritePrepared or WriteUnprepared transactions. If a database is
// open with paranoid_checks=false, a wal_filter or best_efforts_recovery, its indexes fail with
// FailedPrecondition, naming the option; they are rebuilt when it is opened without that option.
//
// Retries and logs: work that fails for a temporary reason, such as a full disk or an I/O error, is
// retried, first after half a second, later every minute. The info log of the database
// (DBOptions::info_log) contains state changes with reasons, failures to flush or compact, and
// writes that waited, in lines that begin with "[cairn]". Neither these lines nor statuses of this
// object contain keys or values of rows, unless DBOptions::allow_data_in_errors is set. While the
// database is open, the directory of each index is locked; other writers of that directory get
// Unavailable.
//
// Reopening: an index verifies that the opened database continues its state, and is rebuilt if it
// does not (docs/operations.md). If the database does not archive its log, Close flushes the
// indexed column families, because their files then prove the state; after a crash the indexes are
// rebuilt.
//
// Transactions: with LookupOptions::transaction or IteratorOptions::transaction, a query sees the
// uncommitted writes of this transaction, as its own Get does. It sees them over the state that the
// query would see otherwise: at LookupOptions::snapshot, or with all commits that returned before
// the call.
//
//   std::unique_ptr<rocksdb::Transaction> move(transactions->BeginTransaction({}));
//   move->Put("ana", "1990|Ana|Oslo");
//   auto people = db->LookupRows("city", "Oslo", {.transaction = move.get()});  // has Ana
//
// This works for Lookup, LookupRows, LookupForUpdate, Count, Contains, NewIterator, Pin and
// PinGroup, also after SetSavePoint, RollbackToSavePoint and Prepare. The transaction must be of
// the database underneath, must index its writes (no DisableIndexing), and no other thread may use
// it during the call. Two of its rows may have the same key of a unique index until it commits. For
// reads that other commits do not change, take a snapshot after the transaction has set its own, so
// that each commit since is a conflict:
//
//   move->SetSnapshot();
//   rocksdb::ManagedSnapshot then(db.get());
//   auto people = db->LookupRows("city", "Oslo", {.snapshot = then.snapshot(),
//                                                 .transaction = move.get()});
//
// The first query after a write of the transaction takes some microseconds for each row that the
// transaction has written; later ones compare its batch with the one that was read, and cost little
// more than outside. A compaction of an index may take half a second longer while a transaction
// queries it. Errors: Unimplemented for LookupRows of an index with dropped_rows=ignore, and for
// merge operands of wide-column entities in RocksDB versions whose transactions do not read
// entities; InvalidArgument for an uncommitted row that cannot be read as the index's spec
// requires.
//
// Shutdown: destroy each handle of an indexed column family through this object
// (DestroyColumnFamilyHandle), or call Close first. Otherwise, this object, the handles and the
// database may be closed and destroyed in any order that RocksDB allows. RocksDB requires that
// handles are destroyed before their database; Open creates a database that is destroyed with this
// object. Close ends all work on indexes. It closes a database from Open as soon as the last handle
// is destroyed; the owner of an attached database closes that database afterwards. A process may
// call exit() while it is open: the background threads are ended first.
class IndexedDB : public rocksdb::StackableDB {
 public:
  // Opens a database and its indexes. Each index catches up from its last state, or is rebuilt
  // according to `options.on_stale`. A failed index is not an error of Open: see ListIndexes. Sets
  // *handles to the handles of the column families, which the caller destroys (see Shutdown above).
  // Errors: those of rocksdb::DB::Open and of reading the index directory, whose parent must exist;
  // InvalidArgument for invalid OpenOptions::devices.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(
      const rocksdb::DBOptions& db_options, const std::string& path,
      const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles, const IndexedDBOptions& options = {});
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(const rocksdb::Options& db_options,
                                                         const std::string& path,
                                                         const IndexedDBOptions& options = {});
  // The same for a TransactionDB or OptimisticTransactionDB, which is then GetBaseDB():
  //
  //   auto* transactions = static_cast<rocksdb::TransactionDB*>(db->GetBaseDB());
  //   std::unique_ptr<rocksdb::Transaction> transfer(transactions->BeginTransaction({}));
  //
  // Indexes follow write-committed transactions only.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(
      const rocksdb::DBOptions& db_options,
      const rocksdb::TransactionDBOptions& transaction_db_options, const std::string& path,
      const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles, const IndexedDBOptions& options = {});
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Open(
      const rocksdb::DBOptions& db_options,
      const rocksdb::OptimisticTransactionDBOptions& transaction_db_options,
      const std::string& path, const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
      std::vector<rocksdb::ColumnFamilyHandle*>* handles, const IndexedDBOptions& options = {});
  // Adds indexes to an open database: a DB, TransactionDB or OptimisticTransactionDB. An index
  // fails if its column family is neither the default one nor in `handles`. Errors: InvalidArgument
  // if `db` is null; those of Open about indexes.
  static absl::StatusOr<std::unique_ptr<IndexedDB>> Attach(
      std::shared_ptr<rocksdb::DB> db, absl::Span<rocksdb::ColumnFamilyHandle* const> handles = {},
      const IndexedDBOptions& options = {});

  // Starts to build the index `spec.name` in the background, while writes continue. The index is
  // recorded on disk before the call returns: if the process ends before the index is built, the
  // next Open builds it. `column_family` must be that of the spec; null: the default one. Indexes
  // of one column family that wait to be built are built together, in one scan. Concurrent calls of
  // CreateIndex, CreateIndexes and DropIndex are executed one after the other.
  //
  //   db->CreateIndex("city = value.field('|', 2):text", {.if_not_exists = true});
  //
  // A spec may be given as text (IndexSpec). Without cf=NAME it is of `column_family`.
  //
  // Errors: AlreadyExists if the name is taken; with if_not_exists only if that index has another
  // spec, naming the first difference. InvalidArgument, with the offset and what was expected
  // there, if the text is not a spec. InvalidArgument if the spec is of another column family, or
  // if its name is not 1 to 128 letters, digits, '_', '-' and '.', not starting with '.'.
  // InvalidArgument if compactions of the column family may drop or change rows and the spec does
  // not ignore that (DroppedRows). FailedPrecondition or Unimplemented, naming the option, if the
  // database cannot be followed with its options (see above). If a database is opened with such
  // options, its existing indexes fail with these errors, and are not built until the options have
  // changed.
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
  // Creates several indexes of one column family, built in one scan of its rows. Creates all that
  // do not exist or, on error, none. Errors: those of CreateIndex.
  virtual absl::Status CreateIndexes(absl::Span<const IndexSpec> specs,
                                     rocksdb::ColumnFamilyHandle* column_family = nullptr,
                                     const CreateIndexOptions& options = {}) = 0;
  // Starts a rebuild of an index in the background, also of a failed one. When this returns, the
  // index is kBuilding, also if another build of it is in progress, which does not count. Errors:
  // NotFound if there is no such index; FailedPrecondition if the index cannot be built until the
  // database is opened again, and after Close.
  virtual absl::Status RebuildIndex(const std::string& name) = 0;
  // Ends all work on an index and removes it and its directory. Pinned versions stay usable.
  // Errors: NotFound if there is no such index. If its files cannot be removed, returns that error;
  // the index has then failed and can be dropped again.
  virtual absl::Status DropIndex(const std::string& name) = 0;
  // Compacts an index (SecondaryIndex::Compact), whether worthwhile or not, and waits for it.
  // Errors: NotFound if there is no such index; Unavailable while it is built or catches up;
  // FailedPrecondition if it is stale or failed; those of Compact.
  virtual absl::Status CompactIndex(const std::string& name) = 0;
  // Waits until an index is ready and has applied all writes that returned before the call. It
  // waits while the index is being built, is scheduled to be built, or catches up. If these writes
  // make the index stale, its rebuild is included. With a timeout of zero, returns at once, and
  // reads no log: the result is the state of the index. Errors: the status of an index that is
  // stale without a rebuild or has failed; DeadlineExceeded after `timeout`; NotFound if there is
  // no such index, also if it is dropped during the call.
  virtual absl::Status WaitUntilReady(const std::string& name,
                                      absl::Duration timeout = absl::InfiniteDuration()) = 0;

  // Returns a snapshot of the database and of its indexes. Reads of rows use it as
  // rocksdb::ReadOptions::snapshot, and queries of indexes as LookupOptions::snapshot or
  // IteratorOptions::snapshot:
  //
  //   rocksdb::ManagedSnapshot then(db.get());
  //   auto people = db->LookupRows("city", "Lisbon", {.snapshot = then.snapshot()});
  //
  // Takes as long as GetSnapshot of the database, and copies nothing. Until it is released, the
  // memory and the files of the indexes' states at the snapshot are kept, also if an index is
  // compacted. Release it with ReleaseSnapshot of this object before the database is closed, and
  // not while a query uses it. Null if the database does not support snapshots or memory runs out.
  //
  // Errors of queries at a snapshot: InvalidArgument if it is not from this method or has been
  // released; FailedPrecondition if the index was not ready at the snapshot, for example because it
  // was created later, or if it became stale or was rebuilt afterwards; those of Lookup.
  const rocksdb::Snapshot* GetSnapshot() override = 0;
  void ReleaseSnapshot(const rocksdb::Snapshot* snapshot) override = 0;

  // Returns the primary keys of the rows with these keys, or with keys in this range: see lookup.h.
  // The result, including the columns of LookupOptions::columns, is from one state of the index,
  // with all writes that returned before the call. The call waits until these writes are applied to
  // the index. The results of Lookup and LookupRows are in memory, which for KeyQuery::Everything()
  // are all rows of the index: set LookupOptions::limit and continue with the cursor. Errors:
  // InvalidArgument, naming the index, the key and what was expected, for keys of the wrong type or
  // number of parts; those of Index and its queries.
  virtual absl::StatusOr<FoundKeys> Lookup(const std::string& index, const KeyQuery& keys,
                                           const LookupOptions& options = {}) const = 0;
  // Returns the rows with these keys. The result is from one state of the database, for the index
  // and the rows, with all writes that returned before the call. The index is brought to exactly
  // the state of a snapshot, so during writes this takes some microseconds longer than Lookup. With
  // dropped_rows=ignore, rows that compactions dropped or changed are omitted if they no longer
  // have such a key. Errors: those of Lookup; InvalidArgument if LookupOptions::columns is not
  // empty; those of reading the rows.
  virtual absl::StatusOr<FoundRows> LookupRows(const std::string& index, const KeyQuery& keys,
                                               const LookupOptions& options = {}) const = 0;
  // Returns the rows with these keys, and locks them for LookupOptions::transaction, which is
  // required, as rocksdb::Transaction::GetForUpdate does: no other transaction can change them
  // until this one ends or, with an OptimisticTransactionDB, this one fails to commit otherwise.
  // Another transaction may give one of the keys to a further row in this time. The rows are of the
  // latest state: `snapshot` must be null. If the transaction has a snapshot
  // (Transaction::SetSnapshot), rows that changed after it are an error, as in GetForUpdate. Rows
  // that had one of the keys when they were locked stay locked, also if they are not returned, and
  // after an error. The transaction's lock timeout limits the wait for each lock; `cancelled` and
  // `deadline` take effect between two locks. As for GetForUpdate, no other thread may destroy the
  // handle of the column family or close the database during the call. Errors: those of LookupRows
  // and GetForUpdate: Unavailable (Busy) and DeadlineExceeded (TimedOut) if another transaction has
  // locked or changed a row.
  virtual absl::StatusOr<FoundRows> LookupForUpdate(const std::string& index, const KeyQuery& keys,
                                                    const LookupOptions& options) const = 0;
  // Return the results of SecondaryIndex::Count and Contains at the state that Lookup would use,
  // and use only `snapshot`, `transaction`, `cancelled` and `deadline` of `options`. Errors: those
  // of Lookup.
  absl::StatusOr<std::vector<uint64_t>> Count(const std::string& index, const KeyQuery& keys,
                                              const LookupOptions& options = {}) const;
  absl::StatusOr<std::vector<bool>> Contains(const std::string& index, const KeyQuery& keys,
                                             const LookupOptions& options = {}) const;
  // Returns an iterator over the entries of an index, at the state that Lookup would use: see
  // index_iterator.h. Errors: those of Lookup, through IndexIterator::status. This is a template so
  // that NewIterator({}) calls the method of rocksdb::DB.
  template <typename Name,
            std::enable_if_t<std::is_convertible_v<const Name&, std::string>, int> = 0>
  IndexIterator NewIterator(const Name& index, const IteratorOptions& options = {}) const {
    return NewIndexIterator(index, options);
  }
  using StackableDB::NewIterator;

  // Returns the index of this name, for batches of physical keys. Each query sees all writes that
  // returned before it began. Two queries may see different states, in which a row may have
  // different ids: use Pin if row ids are passed from one call to another. Errors: NotFound if
  // there is no such index. Errors of queries: Unavailable while the index is built or rebuilt, or
  // catches up when the database is opened; FailedPrecondition, with the reason, if it is stale,
  // failed or dropped, and after Close.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(
      const std::string& name) const = 0;
  // Returns the current state of the index, with all writes that have returned. It never changes,
  // including its row ids, and may outlive the database. With LookupOptions::snapshot, returns the
  // state at that snapshot. `cancelled` and `deadline` limit the wait for writes, here and in
  // PinGroup; the other options are ignored. Errors: those of Index and its queries, and of
  // LookupOptions::snapshot (GetSnapshot).
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const std::string& name, const LookupOptions& options = {}) const = 0;
  // Returns several indexes of one column family at one state, with all writes that have returned,
  // for predicates over them. Writes do not wait. Errors: those of Pin and of IndexGroup::Create.
  //
  //   auto people = db->PinGroup({"city", "age"});
  //   (*people)->Count(Predicate("city", "Lisbon") && Predicate("age", KeyQuery::AtLeast(18)));
  virtual absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      absl::Span<const std::string> names, const LookupOptions& options = {}) const = 0;
  absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      std::initializer_list<std::string> names, const LookupOptions& options = {}) const {
    return PinGroup(absl::MakeConstSpan(names.begin(), names.size()), options);
  }
  // Returns the state that the index has now, without waiting and without reading the log. For a
  // stale index, also while it is rebuilt, this is its last state; SecondaryIndex::sequence() is
  // its sequence number. Errors: NotFound if there is no such index; Unavailable if it has not been
  // built yet.
  virtual absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinStale(
      const std::string& name) const = 0;

  // Returns all indexes, sorted by name. If memory runs out, the end of the list is missing.
  // PrometheusText (prometheus.h) exports this as metrics.
  virtual std::vector<IndexInfo> ListIndexes() const = 0;
  // Returns how many writes have waited for indexes, and for how long.
  virtual BacklogStats Backlog() const = 0;

  // Writes the changes of all indexes to their directories, as Close does. After writes with
  // WriteOptions::disableWAL, first flushes all column families. Errors: FailedPrecondition after
  // Close; those of flushing and of writing the files, after which the work is retried; Unavailable
  // if the last of those writes left no row in the flushed files (single deletions, for example).
  virtual absl::Status FlushIndexes() = 0;

 protected:
  explicit IndexedDB(std::shared_ptr<rocksdb::DB> db) : StackableDB(std::move(db)) {}

 private:
  IndexIterator NewIndexIterator(const std::string& index, const IteratorOptions& options) const;
};

// Removes all indexes of the database at `path` and the directory that contains them. It is the
// counterpart of rocksdb::DestroyDB, which does not remove indexes; call them in either order.
// `options` are those of IndexedDB::Open; only index_directory and open.file_system are used. OK if
// there are no indexes. Errors: Unavailable if the database or one of its indexes is open;
// FailedPrecondition if the directory contains anything other than indexes. In both cases nothing
// is removed. After an I/O error, repeat the call.
absl::Status DestroyIndexes(const std::string& path, const IndexedDBOptions& options = {});

}  // namespace cairn
