#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "engine/live/event_log.h"
#include "engine/live/index_catalog.h"
#include "engine/live/past_log_changes.h"
#include "engine/version/index_writer.h"
#include "index/machine/mutex.h"

namespace cairn {

// One index of a database that it follows: how it stands, what is wanted of it, and, once there is
// one, what makes its versions. Thread-safe, but for what says otherwise.
class FollowedIndex {
 public:
  // `mark` is what the catalog has of it. That and the log must outlive this.
  FollowedIndex(IndexSpec spec, KeyCodec codec, const IndexCatalog* catalog, IndexMark mark,
                rocksdb::ColumnFamilyHandle* column_family, EventLog* log);
  // Of one whose spec has not been read yet: it has a name and nothing else.
  FollowedIndex(const std::string& name, const IndexCatalog* catalog, IndexMark mark,
                EventLog* log);
  // Of an unread one, once: that is what it is.
  void Define(IndexSpec spec, KeyCodec codec, rocksdb::ColumnFamilyHandle* column_family);
  bool is_defined() const { return definition().is_read; }

  const IndexSpec& spec() const { return definition().spec; }
  const std::string& name() const { return name_; }
  const KeyCodec& codec() const { return definition().codec; }
  const std::string& directory() const { return directory_; }
  // Null where there is none; gone once it is cancelled, perhaps.
  rocksdb::ColumnFamilyHandle* column_family() const { return definition().column_family; }
  uint32_t column_family_id() const { return definition().column_family_id; }
  // Whether a change of this scope changes rows of the index, or may: its column family is not
  // known before its spec has been read.
  bool MayBeIn(const PastLogChanges::Scope& scope) const {
    const Definition& defined = definition();
    return !defined.is_read || scope.Has(defined.spec.column_family);
  }

  // What is wanted of it, as it is on the disk, too. Nothing but RemoveMark changes what a dropped
  // one is marked as.
  IndexMark::Kind wanted() const;
  std::string why_marked() const;
  std::string marked_spec() const;
  bool is_to_be_built() const {
    const IndexMark::Kind kind = wanted();
    return kind == IndexMark::Kind::kBuild || kind == IndexMark::Kind::kRebuild;
  }
  // Whether it has been ready since it was created, in this process or before.
  // A dropped index counts as none.
  bool has_been_ready() const {
    const IndexMark::Kind kind = wanted();
    return kind != IndexMark::Kind::kBuild && kind != IndexMark::Kind::kRemoved;
  }
  // Mark the index, in this order, as created and not yet built, as to be rebuilt, as stale because
  // its rows changed past the log (unless a build is due anyway), and as removed.
  absl::Status MarkBuild(const std::string& why);
  absl::Status MarkRebuild(const std::string& why);
  // How often MarkRebuild has succeeded. An attempt that began before the last time does not count.
  uint64_t rebuild_requests() const { return rebuild_requests_; }
  // Sets `*marked`, if given, to whether this call has made the mark.
  absl::Status MarkStale(const std::string& why, bool* marked = nullptr);
  absl::Status MarkRemoved();
  // Marks the index as stale because its stored state may be wrong. If the mark cannot be written,
  // the index is stale all the same, and IndexCatalog::MarkDamaged makes the stored state unusable.
  // So it is if this throws std::bad_alloc: RetryMark then writes the mark.
  void Distrust(std::string_view why);
  // Tries again to write a mark that could not be written.
  void RetryMark();
  // It follows. Aborted where another thing than `wanted` is wanted by now, or `is_disturbed`,
  // which is asked while no mark can be made, says that it would be wrong.
  absl::Status MarkFollowing(IndexMark::Kind wanted, const std::function<bool()>& is_disturbed);

  // How it stands, until End. `repair` as BeginRepair.
  enum class Repair : uint8_t { kNone, kBegins };
  void Set(IndexState state, const absl::Status& why = absl::OkStatus(),
           Repair repair = Repair::kNone);
  // Sets kReady if the state is kCatchingUp, and otherwise returns why not: the reason of the
  // state, or Aborted. `built`: by a build.
  absl::Status SetReady(bool built);
  // Between these two it will not stay stale or failed: somebody is at it, or will be.
  void BeginRepair();
  void EndRepair();
  // It has failed for good, which is logged and reported. Returns at once.
  void GiveUp(const absl::Status& why);
  // It is over, as its user wants it: it was dropped (NotFound), say, or the database was closed.
  // Returns once nobody holds the column family.
  void End(absl::Status why);
  // While this lives, the column family's handle and the database may be used, if the index is
  // ready by then.
  std::shared_lock<std::shared_mutex> HoldColumnFamily() const {
    return std::shared_lock<std::shared_mutex>(column_family_mutex_);
  }
  IndexState state() const;
  // Why it is in that state, if there is a reason.
  absl::Status why() const;
  // Waits as IndexedDB::WaitUntilReady.
  absl::Status Wait(absl::Time deadline) const;

  // The index, by any state it is in; null before there is one.
  std::shared_ptr<IndexWriter> writer() const;
  std::shared_ptr<SecondaryIndex> index() const;
  // Its index where it is ready; else why it is not: Unavailable or FailedPrecondition.
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> Ready() const;
  // Opens what is in the directory, and keeps others from writing there. `db` must live as long as
  // it is stored to. Unavailable where another writes there.
  absl::Status OpenWriter(rocksdb::DB* db, const OpenOptions& options);
  // Lets others write there.
  void LetGoOfDirectory();
  // Whether others are kept from that.
  bool holds_directory() const {
    const std::shared_ptr<IndexWriter> open = writer();
    return open != nullptr && open->holds_directory();
  }

  // To be locked by who builds, merges or stores it, or catches it up before it follows.
  Mutex* work_mutex() ABSL_LOCK_RETURNED(work_mutex_) { return &work_mutex_; }
  // Ends a build or a merge of it that is going on; none is to begin.
  void Cancel() { cancelled_ = true; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // What share of its build is done.
  void set_progress(double share) { progress_ = share; }
  // Following it has failed for a reason that may pass. How long to wait before it is repaired: not
  // at all the first time; where that comes again within `longest`, from `first` on, doubling.
  absl::Duration NoteLoss(absl::Time now, absl::Duration first, absl::Duration longest);
  // How an attempt to store or to merge it ended, and how long it took.
  void NoteStore(const absl::Status& status, absl::Duration duration);
  void NoteMerge(const absl::Status& status, absl::Duration duration);
  // An attempt to build it has failed.
  void NoteFailedBuild();

  // All but the lag.
  IndexInfo Info() const;

  // Of the one thread that merges what pays: after merges that failed, when the next attempt is
  // due, and how long that was put off.
  struct MergeRetry {
    absl::Time due = absl::InfinitePast();
    absl::Duration wait;
  };
  MergeRetry merge_retry;

 private:
  // Sets the state, and has listeners told; Log is to be called once the mutex is unlocked.
  void Change(IndexState state, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes to the log that it is in this state by now.
  void Log(IndexState state, const absl::Status& why) const;
  void LogFailure(const char* what, const absl::Status& status) const;
  absl::Status NotReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Mark(IndexMark::Kind kind, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mark_mutex_);
  void WriteMarkInDoubt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mark_mutex_);

  mutable std::shared_mutex column_family_mutex_;  // before all others

  struct Definition {
    IndexSpec spec;
    KeyCodec codec;
    rocksdb::ColumnFamilyHandle* column_family;
    uint32_t column_family_id;
    bool is_read;
  };

  const Definition& definition() const { return *defined_; }

  const std::string name_;
  const IndexCatalog& catalog_;
  EventLog* const log_;
  const std::string directory_;
  // What it is taken for until its spec has been read, which others may look at still, and what it
  // is.
  std::unique_ptr<const Definition> unread_, read_;
  std::atomic<const Definition*> defined_;

  Mutex work_mutex_;
  std::atomic<bool> cancelled_{false};
  std::atomic<double> progress_{0};

  mutable Mutex mark_mutex_;  // held while the mark is written, too
  IndexMark mark_ ABSL_GUARDED_BY(mark_mutex_);
  // Whether the one on disk may be another, as the last writing failed.
  bool mark_in_doubt_ ABSL_GUARDED_BY(mark_mutex_) = false;
  std::atomic<uint64_t> rebuild_requests_{0};  // changed under mark_mutex_

  mutable Mutex mutex_;
  mutable CondVar changed_;
  IndexState state_ ABSL_GUARDED_BY(mutex_) = IndexState::kBuilding;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  int repairs_ ABSL_GUARDED_BY(mutex_) = 0;  // that have begun and not ended
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t builds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t merges_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t stores_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_builds_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_merges_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_stores_ ABSL_GUARDED_BY(mutex_) = 0;
  // When following failed last, and what was waited then.
  absl::Time lost_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration lost_wait_ ABSL_GUARDED_BY(mutex_);
  absl::Status store_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status merge_status_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<IndexWriter> writer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<SecondaryIndex> index_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
