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
#include "engine/live/end_at_exit.h"
#include "engine/live/event_log.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/index_list.h"
#include "engine/live/index_upkeep.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/past_log_changes.h"
#include "engine/live/unique_guard.h"
#include "engine/where/pinned_groups.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// The indexes of one database, and all that is done to keep them: what is behind IndexedDB, whose
// methods have these names. Thread-safe, also beside Close, after which each call says so.
class IndexSet {
 public:
  // Neither the database nor `options` may go before Close.
  IndexSet(rocksdb::DB* db, IndexedDBOptions options, IndexCatalog catalog);
  ~IndexSet();

  // Has the catalog's indexes follow, and starts what is done in the background.
  // `reports_failed_writes`: NoteFailedWrite is called for those.
  absl::Status Start(absl::Span<rocksdb::ColumnFamilyHandle* const> handles,
                     bool reports_failed_writes);
  // Ends all of it, and stores what is there. The database is not used by anything afterwards, and
  // listeners have been told everything.
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
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinStale(const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      absl::Span<const std::string> names) const;
  absl::StatusOr<FoundKeys> Lookup(const std::string& name, const KeyQuery& keys,
                                   const LookupOptions& options) const;
  absl::StatusOr<FoundRows> LookupRows(const std::string& name, const KeyQuery& keys,
                                       const LookupOptions& options) const;
  // Appends to `infos`.
  void ListIndexes(std::vector<IndexInfo>* infos) const;
  absl::Status FlushIndexes();

  // Whether writes need not come through Write.
  bool BeginUncheckedWrite() { return guard_.BeginPast(); }
  void EndUncheckedWrite() { guard_.EndPast(); }
  // To be called before each write: waits while the indexes are far behind. False if the write
  // must not wait (WriteOptions::no_slowdown) and would.
  bool LimitBacklog(const rocksdb::WriteOptions& options);
  BacklogStats Backlog() const { return event_log_.backlog(); }
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);

  // Calls `change`, which changes rows of the scope in a way that the log does not contain. Their
  // indexes are then stale, for the reason `why`; on disk they are marked before the call. If
  // `is_atomic`, and the change has failed before it changed anything, they stay as they were.
  rocksdb::Status ChangePastLog(const PastLogChanges::Scope& scope, const std::string& why,
                                bool is_atomic, absl::FunctionRef<rocksdb::Status()> change);
  // A file was ingested, through whichever object, and has taken this sequence number; 0 for none.
  // Unless that is part of a ChangePastLog, the column family's indexes are stale for the reason
  // `why`: in memory even if no mark can be written, on disk as by FollowedIndex::Distrust. May be
  // called after Close, also without memory.
  void NoteIngested(const std::string& column_family, SequenceNumber sequence,
                    std::string_view why);
  // A write to the database has failed, through whichever object, as the log was written or, if
  // `in_memtable`, later. If its record may be in the log, and that does not show there, every
  // index is stale, on disk as well. May be called from within a call into the database, also after
  // Close.
  void NoteFailedWrite(bool in_memtable);
  // A write through this object has failed, and no listener reports such: finds out whether the
  // database has stopped taking writes, as it does after a failure in a memtable.
  void CheckFailedWrite(const rocksdb::Status& failed);
  // The indexes of this column family have failed for good, as it has been dropped.
  void DetachFamily(const std::string& column_family, const std::string& why);
  // Likewise those that use this handle, which is about to go.
  void DetachHandle(rocksdb::ColumnFamilyHandle* handle);

 private:
  // Has what the indexes are of in table files: the next opening finds no log that proves it.
  void FlushIfNoLogIsKept();
  void EndWork();
  void EndThreads();
  // False if there is no index by the spec's name; true if there is and that is what `options`
  // want; AlreadyExists otherwise.
  absl::StatusOr<bool> IsThere(const IndexSpec& spec, const CreateIndexOptions& options) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_);
  // Makes an index that is to be built, if the database can be followed for it.
  absl::StatusOr<std::shared_ptr<FollowedIndex>> MakeIndex(
      IndexSpec spec, rocksdb::ColumnFamilyHandle* column_family);
  // Reads what an index is from the catalog.
  absl::Status Define(FollowedIndex* index);
  void Add(const std::shared_ptr<FollowedIndex>& index);
  void WatchUnique();
  absl::Status CheckOpen() const;
  // The same, and that an index may be built.
  absl::Status CheckMayBuild() const;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(const FollowedIndex& index) const;
  IndexList::Indexes In(const PastLogChanges::Scope& scope) const;
  // Appends to `*marked`, if given, the indexes that this call has marked.
  absl::Status MarkStale(const PastLogChanges::Scope& scope, const std::string& why,
                         IndexList::Indexes* marked = nullptr) const;
  // A write that changes nothing and does not wait: fails after an error that the database has not
  // recovered from, and is Incomplete if others have to wait.
  rocksdb::Status WriteNothing();
  // Distrusts each index that `is_affected` returns true for, whatever becomes of the others.
  void Distrust(absl::FunctionRef<bool(const FollowedIndex&)> is_affected, std::string_view why);
  // Whether a change that returned this error has changed nothing, on disk and in memory.
  bool HasChangedNothing(const rocksdb::Status& error);
  void Detach(const std::shared_ptr<FollowedIndex>& index, const std::string& why);

  rocksdb::DB* const db_;
  const IndexedDBOptions options_;
  const IndexCatalog catalog_;
  Mutex handles_mutex_;
  // By the names of their column families: those that came with the database and are there still.
  std::map<std::string, rocksdb::ColumnFamilyHandle*> handles_ ABSL_GUARDED_BY(handles_mutex_);
  EventLog event_log_;
  IndexList indexes_;
  PastLogChanges past_log_;
  const std::shared_ptr<LogFollower> follower_;
  LogRetention retention_;
  IndexUpkeep upkeep_;
  mutable PinnedGroups groups_;
  Mutex watch_mutex_;  // held by WatchUnique
  UniqueGuard guard_;
  BackgroundWork work_;
  std::atomic<bool> failed_writes_show_{false};  // in the log; set by Start
  absl::Status refused_;             // the options that the database is open with; set by Start
  std::atomic<bool> closed_{false};  // set under names_mutex_
  Mutex names_mutex_;                // held while an index comes or goes
  Mutex threads_mutex_;              // held while they end
  const EndAtExit end_at_exit_{[this] {
    EndThreads();
    event_log_.Stop(/*deliver=*/false);
  }};
};

}  // namespace cairn
