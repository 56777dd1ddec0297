#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "engine/live/follow_speed.h"
#include "engine/live/followed_index.h"
#include "engine/live/kept_snapshots.h"
#include "engine/log/log_tail.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/unlogged_writes.h"
#include "engine/serve/change_extractor.h"
#include "engine/source/manifest_families.h"
#include "engine/version/index_writer.h"
#include "index/machine/mutex.h"
#include "index/machine/stop_flag.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace cairn {

// Keeps a database's indexes current by reading its log. It reads the log once for all of them, as
// far as it goes, so concurrent waiters share one read. All indexes are at one sequence number.
// They advance in steps of a few milliseconds, and each step is published. So a waiter returns as
// soon as the sequence number that it needs is published.
//
// Indexes join at their own state, which may be before that of the others. Then reading restarts at
// the lowest state, and each index takes part from its own sequence number on.
//
// An index that cannot continue leaves. If the log does not continue, all indexes that have reached
// that place leave. Thread-safe, also during Close.
class LogFollower {
 public:
  using OnLost = std::function<void(const std::shared_ptr<FollowedIndex>&, const absl::Status&)>;
  // kSteps: publish every few milliseconds. kOnce: each call publishes once, at its end, and reads
  // larger slices. So the intermediate states of a unique index do not matter.
  enum class Publishing : uint8_t { kSteps, kOnce };

  // `live` describes the log before any write that an index can miss. `on_lost` is called for each
  // index that has left, with the reason, during a call of this object, which it must not use. It
  // must set the index's state, and must not throw. `main`, if given, is the follower of the
  // database that keeps its unlogged writes, and must outlive this object.
  LogFollower(rocksdb::DB* db, LiveLog live, OnLost on_lost,
              Publishing publishing = Publishing::kSteps, LogFollower* main = nullptr);
  ~LogFollower();

  // Gives up the indexes whose column families were dropped past the object. The first log record
  // of a newer column family has the same effect. Costs two short reads of files. If the MANIFEST
  // is damaged, all indexes leave. Errors: other errors of reading the MANIFEST; Unavailable if a
  // suspended index was skipped, because the object itself may be dropping its column family.
  absl::Status CheckFamilies();
  // The id of the database's column family of this name; UINT32_MAX if there is none. Errors: those
  // of reading the MANIFEST.
  absl::StatusOr<uint32_t> FamilyId(const std::string& name);

  // Brings the indexes up to the last commit. Each index has its own result in its state. Errors:
  // FailedPrecondition once this is closed.
  absl::Status Follow();
  // Returns the version of the index with all commits that returned before the call. Errors: those
  // of FollowedIndex::Ready and Follow; Cancelled or DeadlineExceeded if `stop` ends the wait, here
  // and in the next three methods.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> Current(const FollowedIndex& index,
                                                              const StopCondition& stop = {});
  // Like Current, but returns null if the index is not ready, or is lost during the call. Its state
  // then has the reason. Errors therefore concern the log or `stop`: to wait for the index does not
  // help.
  absl::StatusOr<std::shared_ptr<const IndexVersion>> CurrentIfReady(
      const FollowedIndex& index, const StopCondition& stop = {});
  // Returns the versions of several indexes at one sequence number, with all commits before the
  // call. Errors: those of Current; FailedPrecondition if one has left the log.
  absl::StatusOr<std::vector<std::shared_ptr<const IndexVersion>>> CurrentTogether(
      absl::Span<const std::shared_ptr<FollowedIndex>> indexes, const StopCondition& stop = {});
  // An index at one state with all commits before the call, the writer that has this state, and a
  // snapshot of the database at the same sequence number. Errors: those of Current;
  // FailedPrecondition if the database does not support snapshots.
  struct State {
    std::shared_ptr<IndexWriter> writer;
    std::shared_ptr<const IndexVersion> version;
    std::shared_ptr<rocksdb::ManagedSnapshot> snapshot;
  };
  absl::StatusOr<State> CurrentState(const FollowedIndex& index, const StopCondition& stop = {});
  // An index at the state of a snapshot from snapshots(). Errors: those of Current; InvalidArgument
  // for another snapshot; FailedPrecondition if the index was not ready at that state, or has been
  // rebuilt or stale since.
  absl::StatusOr<State> StateAt(const FollowedIndex& index, const rocksdb::Snapshot* snapshot,
                                const StopCondition& stop = {});
  KeptSnapshots& snapshots() { return snapshots_; }
  // Waits while catching up would take the indexes longer than `longest`. From half of that on,
  // while another thread follows, delays the caller by some milliseconds at most, in proportion to
  // the rest of the backlog. So writers slow down to the speed of the indexes, and rarely stop.
  // Sets `waited` to the total of delay and wait. If not `may_wait`, returns at once, and returns
  // false instead of waiting. If no wait is needed, this costs a few nanoseconds.
  bool LimitBacklog(absl::Duration longest, bool may_wait, absl::Duration* waited);

  // Adds indexes with writers, which must be distinct and no members, and returns the result for
  // each. Returns once they have caught up. The log is read once for all. Other members wait during
  // that time, so the new ones should be nearly current. But members do not wait for the checks
  // before and after, whose time grows with the database's files. The database must stay open until
  // this returns.
  //
  // Errors: FailedPrecondition if the database does not continue an index's state, or if files were
  // ingested since (not checked with kUnchecked); Cancelled if the index or this object is
  // cancelled; errors of the index's rows. An index that cannot join does not affect the others.
  enum class Ingested : uint8_t { kChecked, kUnchecked };
  std::vector<absl::Status> Join(absl::Span<const std::shared_ptr<FollowedIndex>> indexes,
                                 Ingested ingested = Ingested::kChecked);
  void Leave(const FollowedIndex& index);
  // Makes the indexes for which `is_failing` returns true leave, with this reason.
  void Fail(absl::FunctionRef<bool(const FollowedIndex&)> is_failing, const absl::Status& why);

  // Records that the log may have a record that the database lacks. All indexes leave before any of
  // them reads further. Does not wait, so it can be called during a call into the database.
  void Doubt() { doubted_ = true; }
  // If this has been doubted, makes all indexes leave.
  void HeedDoubt();

  // The sequence numbers that are not in the log. A batch is followed like a record of the log. All
  // indexes continue after the number of an ingested file; those of its column family must leave
  // for that reason. The caller must not use the follower during an ingestion.
  UnloggedWrites& unlogged() { return main_ == nullptr ? unlogged_ : main_->unlogged_; }

  // The number of sequence numbers that the members have not reached yet; 0 without members.
  SequenceNumber Behind() const;
  // The last time at which the indexes were known to be current; now, if there are none.
  absl::Time current_at() const;
  // Returns the number of the log file that the follower has reached, or a lower number; 0 if there
  // are no members.
  uint64_t log_number() const;

  // Closes the file of the log that is kept open for the next call, so that a deleted file does not
  // occupy the disk while nothing is written.
  void CloseLogFile();

  // Returns once the call in progress, if there is one, has ended, and so loses no more indexes.
  void AwaitCall() const { const MutexLock lock(&mutex_); }

  const LiveLog& live_log() const { return live_; }

  // Returns the database's sequence number. Errors: FailedPrecondition once this is closed.
  absl::StatusOr<SequenceNumber> Latest() const;

  // Ends following, and waits for that. The database is not used afterwards.
  void Close();

 private:
  struct Family {
    rocksdb::ColumnFamilyHandle* handle;
    SettledChanges settled;
    std::unique_ptr<SnapshotSource> source;  // for rows to be looked up
  };
  // An index's knowledge of ingested files (Anchor).
  struct KnownFiles {
    uint64_t ingested_file = 0;  // the newest
    std::shared_ptr<const TableFiles> tables;
  };
  // A following index, and the objects that extract its rows' keys.
  struct Member {
    std::shared_ptr<FollowedIndex> index;
    std::unique_ptr<ChangeExtractor> extractor;
    std::unique_ptr<RowUpdates> updates;
    // The member takes part once the follower has read up to `from`, which is at `position` in the
    // log.
    SequenceNumber from = 0;
    LogPosition position;
    KnownFiles known;
    absl::Status* joining = nullptr;  // the result of an index in Join
  };
  // Exclusive updates of the members from one state to another.
  struct Updates {
    std::vector<std::unique_ptr<IndexWriter::Update>> of_member;  // null if the member has failed
    std::vector<absl::Status> status;                             // the reason
  };

  // Brings the indexes up to `sequence`, and further to all current commits, or waits until another
  // thread has done so. Errors: FailedPrecondition after Close; those of `stop`.
  absl::Status Follow(SequenceNumber sequence, const StopCondition& stop = {});
  // Brings the indexes up to `sequence`, which the database has reached, and no further. Errors:
  // those of Follow.
  absl::Status FollowUpTo(SequenceNumber sequence, const StopCondition& stop);

  // Checks that the database continues the index's state, and updates the index's anchor
  // accordingly.
  absl::StatusOr<Member> Admit(const std::shared_ptr<FollowedIndex>& index);
  // Brings one index to the database's current state. No other thread may write to the index.
  absl::Status CatchUpAlone(const FollowedIndex& index) const;
  // Removes the admitted indexes whose column families have been dropped, and sets their results.
  absl::Status LoseThoseOfGoneFamilies(std::vector<Member>* admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the admitted indexes that already are members, and sets their results.
  void RefuseMembers(std::vector<Member>* admitted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds the admitted indexes, and brings all to one state. Returns a snapshot of that state, or
  // null after setting their results.
  std::shared_ptr<rocksdb::ManagedSnapshot> TakeIn(std::vector<Member>* admitted);
  // Makes the indexes leave that lack rows of ingested files newer than those that they know.
  void CheckIngested(absl::Span<const std::shared_ptr<FollowedIndex>> indexes,
                     absl::Span<const KnownFiles> known, SequenceNumber until,
                     absl::Span<absl::Status> status);

  // Returns whether reading has reached the member's state.
  bool TakesPart(const Member& member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return member.from <= tail_->sequence();
  }
  // Brings the indexes to a state. Each one's result is in its state. The first overload ends
  // between two steps if `stop` has an error, and returns it.
  absl::Status FollowTo(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot,
                        const StopCondition& stop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FollowTo(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FollowTo(until, std::move(snapshot), {}).IgnoreError();
  }
  // Stores the indexes' versions for the snapshots that they have reached.
  void KeepVersions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Follows up to a place where the indexes can be published, and publishes them.
  absl::Status Step(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Advance(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot,
                       Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies changes_, which begin after `start`, to the members that take part there.
  absl::Status ApplySlice(SequenceNumber start,
                          const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                          Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees the memory that a slice of the log took for a family.
  void GiveBackMemory(size_t family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status ApplyTo(const Member& member, const Family& family,
                              IndexWriter::Update* update);
  void Publish(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The database's column families: names by id.
  absl::StatusOr<std::map<uint32_t, std::string>> LiveFamilies() {
    const MutexLock lock(&manifest_mutex_);
    return manifest_.Read();
  }
  // Gives up the indexes whose column families have been dropped, if the log may show that.
  absl::Status CheckFamilies(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the next changes into changes_: those of the log, or those of unlogged batches. Ends
  // where one kind follows the other. Errors: those of LogTail.
  absl::Status ReadSlice(SequenceNumber until, size_t max_bytes, const rocksdb::Snapshot* snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls on_lost_. The index has no versions at earlier snapshots any more.
  void Lose(const Member& member, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The members for which `is_lost` returns true leave, each for the reason that `why` returns.
  void LoseThose(absl::FunctionRef<bool(const Member&)> is_lost,
                 absl::FunctionRef<absl::Status(const Member&)> why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the members leave that take part at the current place.
  void FailReaders(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Restarts reading for the members' column families at the lowest member's state. If memory runs
  // out, all members leave.
  void RestartTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores the current place of reading in the members.
  void EndTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notifies waiters of the progress of reading.
  void NoteProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  const LiveLog live_;
  const OnLost on_lost_;
  const Publishing publishing_;
  LogFollower* const main_;  // has the unlogged writes; null: this has
  UnloggedWrites unlogged_;

  // Held, shared, while the database is used without mutex_.
  mutable std::shared_mutex use_mutex_;
  std::atomic<bool> closed_{false};  // set under both
  std::atomic<bool> doubted_{false};

  // The sequence number that the indexes have reached; the largest number if there are none.
  std::atomic<SequenceNumber> followed_;
  FollowSpeed speed_;  // changed under mutex_
  KeptSnapshots snapshots_;

  mutable Mutex mutex_;  // locked before the two others
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  std::vector<Family> families_ ABSL_GUARDED_BY(mutex_);     // of the members
  std::vector<RowChanges> changes_ ABSL_GUARDED_BY(mutex_);  // of families_, for the current slice
  std::vector<UnloggedBatch> batches_ ABSL_GUARDED_BY(mutex_);  // for the current slice
  std::unique_ptr<LogTail> tail_ ABSL_GUARDED_BY(mutex_);       // null without members
  bool slice_is_full_ ABSL_GUARDED_BY(mutex_) = false;          // the last slice ended at its size
  // The largest id in the log at the last check of the column families.
  uint32_t newest_family_ ABSL_GUARDED_BY(mutex_) = 0;
  Mutex manifest_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  ManifestFamilies manifest_ ABSL_GUARDED_BY(manifest_mutex_);

  mutable Mutex progress_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  bool following_ ABSL_GUARDED_BY(progress_mutex_) = false;  // a thread is in FollowTo
  absl::Time current_at_ ABSL_GUARDED_BY(progress_mutex_);
  CondVar progressed_;
};

}  // namespace cairn
