#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/index_spec.h"
#include "cairn/indexed_db.h"
#include "cairn/key_codec.h"
#include "cairn/key_order.h"
#include "cairn/options.h"
#include "engine/live/event_log.h"
#include "engine/live/index_catalog.h"
#include "engine/live/past_log_changes.h"
#include "engine/log/older_logs.h"
#include "engine/log/unlogged_writes.h"
#include "engine/version/index_writer.h"
#include "index/machine/mutex.h"

namespace cairn {

// Returns the reason of an index whose column family was dropped. Either the call that drops the
// column family or the check of all column families gives it, whichever runs first.
std::string FamilyWasDropped(const std::string& column_family);

// A followed index of a database: its state, its mark in the catalog, and its writer once it has
// one. Thread-safe unless a method says otherwise.
class FollowedIndex {
 public:
  // `mark` is the index's mark in the catalog. The catalog and the log must outlive this.
  FollowedIndex(IndexSpec spec, KeyCodec codec, const IndexCatalog* catalog, IndexMark mark,
                rocksdb::ColumnFamilyHandle* column_family, EventLog* log);
  // Creates an index whose spec has not been read yet. It has only a name.
  FollowedIndex(const std::string& name, const IndexCatalog* catalog, IndexMark mark,
                EventLog* log);
  // Sets the spec of such an index. Must be called at most once. `column_family_id` is also set if
  // there is no handle. UINT32_MAX: the database has no such column family.
  void Define(IndexSpec spec, KeyCodec codec, rocksdb::ColumnFamilyHandle* column_family,
              uint32_t column_family_id);
  bool is_defined() const { return definition().is_read; }

  const IndexSpec& spec() const { return definition().spec; }
  const std::string& name() const { return name_; }
  const KeyCodec& codec() const { return definition().codec; }
  const std::string& directory() const { return directory_; }
  // Null if there is none. May be invalid once the index is cancelled.
  rocksdb::ColumnFamilyHandle* column_family() const { return definition().column_family; }
  uint32_t column_family_id() const { return definition().column_family_id; }
  // The order of the column family's keys; nullopt if there was no handle.
  std::optional<KeyOrder> order() const { return definition().order; }
  // Returns whether a change past the log with this scope may change rows of the index. Returns
  // true until the spec has been read, because the column family is unknown.
  bool MayBeIn(const PastLogChanges::Scope& scope) const {
    const Definition& defined = definition();
    return !defined.is_read || scope.Has(defined.spec.column_family);
  }

  // The index's mark, as on disk. The mark of a dropped index does not change any more.
  IndexMark::Kind wanted() const;
  std::string why_marked() const;
  std::string marked_spec() const;
  bool is_to_be_built() const {
    const IndexMark::Kind kind = wanted();
    return kind == IndexMark::Kind::kBuild || kind == IndexMark::Kind::kRebuild;
  }
  // Returns whether the index has been ready since it was created, in this process or before.
  // Returns false for a dropped index.
  bool has_been_ready() const {
    const IndexMark::Kind kind = wanted();
    return kind != IndexMark::Kind::kBuild && kind != IndexMark::Kind::kRemoved;
  }
  // Mark the index as created and not yet built, as to be rebuilt, as stale because its rows
  // changed past the log (unless a build is due anyway), and as removed.
  absl::Status MarkBuild(const std::string& why);
  absl::Status MarkRebuild(const std::string& why);
  // The number of successful MarkRebuild calls. A build attempt that began before the last one does
  // not satisfy it.
  uint64_t rebuild_requests() const { return rebuild_requests_; }
  // Sets `*marked`, if given, to whether this call wrote the mark.
  absl::Status MarkStale(const std::string& why, bool* marked = nullptr);
  absl::Status MarkRemoved();
  // Marks the index as stale because its stored state may be wrong. If the mark cannot be written
  // or this throws std::bad_alloc, the index is stale nevertheless, IndexCatalog::MarkDamaged makes
  // the stored state unusable, and RetryMark writes the mark later.
  void Distrust(std::string_view why);
  // Tries again to write a mark that could not be written.
  void RetryMark();
  // Marks the index as following. Returns Aborted if the mark is no longer `wanted`, or if
  // `is_disturbed` returns true, which is called while no other mark can be made.
  // If `durable` is an error, the stored state may be ahead of the database's files. Then the mark
  // is that of a stale index, with this reason.
  absl::Status MarkFollowing(IndexMark::Kind wanted, const std::function<bool()>& is_disturbed,
                             const absl::Status& durable = absl::OkStatus());

  // Sets the state, until End. `repair` is as for BeginRepair.
  enum class Repair : uint8_t { kNone, kBegins };
  void Set(IndexState state, const absl::Status& why = absl::OkStatus(),
           Repair repair = Repair::kNone);
  // Sets kReady if the state is kCatchingUp. Otherwise returns the reason of the state; Aborted if
  // there is none, or if another build has been requested.
  // `built`: after a build.
  absl::Status SetReady(bool built);
  // Between these two calls, a thread repairs the index or will repair it, so a stale or failed
  // state is not final.
  void BeginRepair();
  void EndRepair();
  // Marks the index as permanently failed, and logs and reports the failure. Does not wait.
  void GiveUp(const absl::Status& why);
  // Ends the index at its user's request, for example because it was dropped (NotFound) or the
  // database was closed. Returns once no thread holds the column family.
  void End(absl::Status why);
  // While the returned lock exists, the caller may use the column family's handle and the database,
  // if the index is ready by then.
  std::shared_lock<std::shared_mutex> HoldColumnFamily() const {
    return std::shared_lock<std::shared_mutex>(column_family_mutex_);
  }
  IndexState state() const;
  // The reason of the state, if there is one.
  absl::Status why() const;
  // Waits as IndexedDB::WaitUntilReady.
  absl::Status Wait(absl::Time deadline) const;

  // The index in any state; null if it does not exist yet.
  std::shared_ptr<IndexWriter> writer() const;
  // Returns the index if it is ready. Errors: Unavailable or FailedPrecondition, with the reason.
  absl::StatusOr<std::shared_ptr<IndexWriter>> Ready() const;
  // Between these two calls, Ready returns Unavailable, because a caller may change rows past the
  // log, and other readers may see the change before the index is stale. The state does not change.
  void Suspend();
  void Resume();
  bool is_suspended() const;
  // Opens the index in the directory, and keeps other processes from writing there. `db` must live
  // as long as the index is stored, as must `unlogged`. Indexes of one database should share
  // `older_logs`. Errors: Unavailable if another process writes there.
  absl::Status OpenWriter(rocksdb::DB* db, std::shared_ptr<OlderLogs> older_logs,
                          UnloggedWrites* unlogged, const OpenOptions& options);
  // Lets other processes write to the directory.
  void LetGoOfDirectory();
  // Returns whether other processes are kept from writing to the directory.
  bool holds_directory() const {
    const std::shared_ptr<IndexWriter> open = writer();
    return open != nullptr && open->holds_directory();
  }

  // A thread must hold this lock to build, merge or store the index, or to catch it up before it
  // follows.
  Mutex* work_mutex() ABSL_LOCK_RETURNED(work_mutex_) { return &work_mutex_; }
  // Cancels a build or a merge that is in progress. No other may begin afterwards.
  void Cancel() { cancelled_ = true; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // Sets the share of the build that is done.
  void set_progress(double share) { progress_ = share; }
  // Records that the index could not follow for a temporary reason. Returns how long to wait before
  // a repair: zero the first time. If following fails again within `longest`, the wait is `first`,
  // and each further failure doubles it, up to `longest`.
  absl::Duration NoteLoss(absl::Time now, absl::Duration first, absl::Duration longest);
  // Record the result and duration of an attempt to store or to merge the index.
  void NoteStore(const absl::Status& status, absl::Duration duration);
  void NoteMerge(const absl::Status& status, absl::Duration duration);
  // Records a failed build attempt.
  void NoteFailedBuild();

  // Everything except the lag.
  IndexInfo Info() const;

  // Used only by the thread that merges indexes: when the next attempt is due after failed merges,
  // and the current delay.
  struct MergeRetry {
    absl::Time due = absl::InfinitePast();
    absl::Duration wait;
  };
  MergeRetry merge_retry;

 private:
  // Sets the state and notifies listeners. Call Log once the mutex is unlocked.
  void Change(IndexState state, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the state to the log.
  void Log(IndexState state, const absl::Status& why) const;
  void LogFailure(const char* what, const absl::Status& status) const;
  absl::Status NotReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Mark(IndexMark::Kind kind, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mark_mutex_);
  void WriteMarkInDoubt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mark_mutex_);

  mutable std::shared_mutex column_family_mutex_;  // locked before all others

  struct Definition {
    IndexSpec spec;
    KeyCodec codec;
    rocksdb::ColumnFamilyHandle* column_family;
    uint32_t column_family_id;
    std::optional<KeyOrder> order;
    bool is_read;
  };

  const Definition& definition() const { return *defined_; }

  const std::string name_;
  const IndexCatalog& catalog_;
  EventLog* const log_;
  const std::string directory_;
  // The definition before the spec was read, which other threads may still use, and the real one.
  std::unique_ptr<const Definition> unread_, read_;
  std::atomic<const Definition*> defined_;

  Mutex work_mutex_;
  std::atomic<bool> cancelled_{false};
  std::atomic<double> progress_{0};

  mutable Mutex mark_mutex_;  // also held while the mark is written
  IndexMark mark_ ABSL_GUARDED_BY(mark_mutex_);
  // Whether the mark on disk may differ, because the last write failed.
  bool mark_in_doubt_ ABSL_GUARDED_BY(mark_mutex_) = false;
  std::atomic<uint64_t> rebuild_requests_{0};  // changed under mark_mutex_

  mutable Mutex mutex_;
  mutable CondVar changed_;
  IndexState state_ ABSL_GUARDED_BY(mutex_) = IndexState::kBuilding;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  int repairs_ ABSL_GUARDED_BY(mutex_) = 0;      // begun and not ended
  int suspensions_ ABSL_GUARDED_BY(mutex_) = 0;  // begun and not ended
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t builds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t merges_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stores_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_builds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_merges_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_stores_ ABSL_GUARDED_BY(mutex_) = 0;
  // When following last failed, and how long the wait was.
  absl::Time lost_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration lost_wait_ ABSL_GUARDED_BY(mutex_);
  absl::Status store_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status merge_status_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<IndexWriter> writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
