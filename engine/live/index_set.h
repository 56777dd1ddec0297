#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/indexed_db.h"
#include "engine/live/background_work.h"
#include "engine/live/event_log.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/index_list.h"
#include "engine/live/index_upkeep.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/past_log_changes.h"
#include "engine/live/transaction_views.h"
#include "engine/live/unique_guard.h"
#include "engine/util/end_at_exit.h"
#include "engine/where/pinned_groups.h"
#include "index/machine/mutex.h"
#include "index/machine/stop_flag.h"
#include "rocksdb/db.h"

namespace cairn {

// The indexes of one database and all work to maintain them. It implements IndexedDB, whose methods
// have the same names. Thread-safe, also during Close; later calls return an error.
class IndexSet {
 public:
  // The database and `options` must live until Close.
  IndexSet(rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> handles,
           IndexedDBOptions options, IndexCatalog catalog);
  ~IndexSet();

  // Makes the catalog's indexes follow, and starts the background work. `reports_failed_writes`:
  // NoteFailedWrite is called for failed writes.
  absl::Status Start(absl::Span<rocksdb::ColumnFamilyHandle* const> handles,
                     bool reports_failed_writes);
  // Ends all work and stores the indexes. Afterwards nothing uses the database any more, and all
  // events have been delivered to listeners.
  void Close();
  bool closed() const { return closed_; }

  absl::Status CreateIndexes(absl::Span<const IndexSpec> specs,
                             rocksdb::ColumnFamilyHandle* column_family,
                             const CreateIndexOptions& options);
  absl::Status RebuildIndex(const std::string& name);
  absl::Status DropIndex(const std::string& name);
  absl::Status CompactIndex(const std::string& name);
  absl::Status WaitUntilReady(const std::string& name, absl::Duration timeout) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(const std::string& name,
                                                            const LookupOptions& options) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinStale(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(absl::Span<const std::string> names,
                                                             const LookupOptions& options) const;
  absl::StatusOr<FoundKeys> Lookup(const std::string& name, const KeyQuery& keys,
                                   const LookupOptions& options) const;
  absl::StatusOr<FoundRows> LookupRows(const std::string& name, const KeyQuery& keys,
                                       const LookupOptions& options) const;
  absl::StatusOr<FoundRows> LookupForUpdate(const std::string& name, const KeyQuery& keys,
                                            const LookupOptions& options) const;
  // Returns null if the database does not support snapshots.
  const rocksdb::Snapshot* GetSnapshot() { return follower_->snapshots().Take(); }
  // Returns false if the snapshot is not from GetSnapshot.
  bool ReleaseSnapshot(const rocksdb::Snapshot* snapshot) {
    return follower_->snapshots().Release(snapshot);
  }
  // Appends to `infos`.
  void ListIndexes(std::vector<IndexInfo>* infos) const;
  absl::Status FlushIndexes();

  // Returns whether a write may bypass Write.
  bool BeginUncheckedWrite() { return guard_.BeginPast(); }
  void EndUncheckedWrite() { guard_.EndPast(); }
  // Must be called before each write. Waits while the indexes are too far from current. Returns
  // false if the write would have to wait but must not (WriteOptions::no_slowdown).
  bool LimitBacklog(const rocksdb::WriteOptions& options);
  BacklogStats Backlog() const { return event_log_.backlog(); }
  // `same`: the batch, if it does not change after the call; otherwise an unlogged write copies it.
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                        std::shared_ptr<const rocksdb::WriteBatch> same = nullptr);
  // A flush of a column family has written rows with numbers up to `sequence` to files.
  void NoteFlushed(SequenceNumber sequence) { follower_->unlogged().NoteFlushed(sequence); }

  // Calls `change`, which changes rows of the scope in a way that the log does not contain. Then
  // their indexes are stale, with the reason `why`; on disk they are marked before the call. They
  // are suspended during the call. They remain unchanged if `is_atomic` and the change fails before
  // it changes anything.
  rocksdb::Status ChangePastLog(const PastLogChanges::Scope& scope, const std::string& why,
                                bool is_atomic, absl::FunctionRef<rocksdb::Status()> change);
  // Records that a file was ingested, through any object of the database, and has taken this
  // sequence number; 0 for none. Unless that is part of a ChangePastLog, the column family's
  // indexes become stale, with the reason `why`: in memory even if no mark can be written, on disk
  // as by FollowedIndex::Distrust. May be called after Close, and if memory is exhausted.
  void NoteIngested(const std::string& column_family, SequenceNumber sequence,
                    std::string_view why);
  // Records a failed write, through any object of the database: it failed when the log was written
  // or, if `in_memtable`, later. If its record may be in the log without being recognizable there,
  // every index becomes stale, also on disk. May be called during a call into the database, and
  // after Close.
  void NoteFailedWrite(bool in_memtable);
  // Handles a failed write through this object if no listener reports failed writes. Checks whether
  // the database has stopped accepting writes, as it does after a failure in a memtable.
  void CheckFailedWrite(const rocksdb::Status& failed);
  // Marks the indexes of this column family as permanently failed, because it has been dropped.
  void DetachFamily(const std::string& column_family, const std::string& why);
  // Does the same for the indexes that use this handle, which is about to be destroyed.
  void DetachHandle(rocksdb::ColumnFamilyHandle* handle);

 private:
  // The first write without a log may get the number of an empty range at the end of the recovered
  // log. An index that reads this end again would take the write for that range. So this makes sure
  // that the files of each index have a state of this session and that the log ends there, or marks
  // the index as stale.
  absl::Status BeginUnlogged();
  // Writes without a log, and gives the batch to the follower.
  rocksdb::Status WriteUnlogged(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                std::shared_ptr<const rocksdb::WriteBatch> same);
  // Flushes the indexed column families to table files if no log is kept: the next opening then
  // finds no log that proves the indexes' state.
  void FlushIfNoLogIsKept();
  void EndWork();
  void EndThreads();
  // Returns false if no index has the spec's name; true if one has and `options` accept it;
  // otherwise AlreadyExists.
  absl::StatusOr<bool> IsThere(const IndexSpec& spec, const CreateIndexOptions& options) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  // Creates an index that must be built, if the index can follow the database.
  absl::StatusOr<std::shared_ptr<FollowedIndex>> MakeIndex(
      IndexSpec spec, rocksdb::ColumnFamilyHandle* column_family);
  // Reads an index's spec from the catalog.
  absl::Status Define(FollowedIndex* index);
  void Add(const std::shared_ptr<FollowedIndex>& index);
  void WatchUnique();
  absl::Status CheckOpen() const;
  // CheckOpen, and checks that an index may be built.
  absl::Status CheckMayBuild() const;
  // Returns the index's version at the snapshot of `options`, or else with all commits that
  // returned before the call; with the writes of its transaction, if there is one.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> VersionOf(const FollowedIndex& index,
                                                                const LookupOptions& options) const;
  // The same with a snapshot of the rows. The caller must hold the column family.
  absl::StatusOr<LogFollower::State> StateOf(const FollowedIndex& index,
                                             const LookupOptions& options) const;
  absl::StatusOr<FoundRows> RowsOf(const std::shared_ptr<FollowedIndex>& index,
                                   const KeyQuery& keys, const LookupOptions& options) const;
  IndexList::Indexes In(const PastLogChanges::Scope& scope) const;
  // Makes an empty write that does not wait. It fails after an error from which the database has
  // not recovered, and is Incomplete if writes must wait.
  rocksdb::Status WriteNothing();
  // Calls FollowedIndex::Distrust for each index for which `is_affected` returns true. An exception
  // for one index does not affect the others.
  void Distrust(absl::FunctionRef<bool(const FollowedIndex&)> is_affected, std::string_view why);
  // Returns whether a change that returned this error has changed nothing, on disk and in memory.
  bool HasChangedNothing(const rocksdb::Status& error);
  void Detach(const std::shared_ptr<FollowedIndex>& index, const std::string& why);

  rocksdb::DB* const db_;
  const IndexedDBOptions options_;
  const IndexCatalog catalog_;
  Mutex handles_mutex_;
  // Handles by name of the column family, of those that were passed with the database and still
  // exist.
  std::map<std::string, rocksdb::ColumnFamilyHandle*> handles_ ABSL_GUARDED_BY(handles_mutex_);
  EventLog event_log_;
  IndexList indexes_;
  PastLogChanges past_log_;
  const std::shared_ptr<LogFollower> follower_;
  LogRetention retention_;
  IndexUpkeep upkeep_;
  mutable PinnedGroups groups_;
  mutable TransactionViews views_;
  Mutex watch_mutex_;  // held by WatchUnique
  UniqueGuard guard_;
  BackgroundWork work_;
  std::atomic<bool> failed_writes_show_{false};  // in the log; set by Start
  bool follows_unlogged_ = false;                // writes without a log; set by Start
  absl::Status refused_;  // the error of the options of the database, if any; set by Start
  Mutex unlogged_mutex_;  // held by BeginUnlogged
  std::atomic<bool> begun_unlogged_{false};  // BeginUnlogged has succeeded
  std::atomic<bool> closed_{false};          // set under names_mutex_
  Mutex names_mutex_;                        // held while an index is added or removed
  Mutex threads_mutex_;                      // held while the threads end
  const EndAtExit end_at_exit_{[this] {
    EndThreads();
    event_log_.Stop(/*deliver=*/false);
  }};
};

}  // namespace cairn
