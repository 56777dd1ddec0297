#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <shared_mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/delta/row_updates.h"
#include "engine/live/followed_index.h"
#include "engine/log/log_tail.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/serve/change_extractor.h"
#include "engine/source/manifest_families.h"
#include "engine/version/index_writer.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace cairn {

// Keeps a database's indexes current by reading its log: once for all of them, and for as much as
// is there, so that those who wait for it wait together. All its indexes are at one sequence
// number. They come to the end by steps of some milliseconds, each of which is published: who needs
// no more than that waits no longer.
//
// Indexes join at the state that each has, behind the others perhaps: reading then begins at the
// lowest, and each index takes part from its own sequence number on.
//
// One that cannot go on leaves. If the log does not go on, all leave that have come to that place.
// Thread-safe, also beside Close.
class LogFollower {
 public:
  using OnLost = std::function<void(const std::shared_ptr<FollowedIndex>&, const absl::Status&)>;
  // kSteps: a step is published every few milliseconds. kOnce: each call publishes once, at its
  // end, so that what a unique index has in between does not count, and reads larger pieces.
  enum class Publishing : uint8_t { kSteps, kOnce };

  // `live`: what was known of the log before any write that an index can miss. `on_lost` is called
  // for each index that has left so, and why, in the middle of a call of this
  // object, which it may not use. It is to set the index's state, and throws nothing.
  // `told`: who is told of ingestions in place of this one, and must outlive it.
  LogFollower(rocksdb::DB* db, LiveLog live, OnLost on_lost,
              Publishing publishing = Publishing::kSteps, LogFollower* told = nullptr);
  ~LogFollower();

  // Watches for column families that are dropped past the object: with each call of CheckFamilies,
  // and with the first record of another one that was made since. To be called before the first
  // Join.
  void WatchFamilies() { watches_families_ = true; }
  bool watches_families() const { return watches_families_; }
  // Gives up the indexes whose column families have been dropped since. Costs two short reads of
  // files. Errors: those of reading the MANIFEST.
  absl::Status CheckFamilies();

  // Brings the indexes up to all that has been committed. That they have got there says each of
  // them. FailedPrecondition once this is closed.
  absl::Status Follow();
  // The index at what all had committed that returned before the call; why it cannot be had else:
  // FollowedIndex::Ready, Follow.
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> Current(const FollowedIndex& index);
  // The versions of several indexes at one sequence number, which has all that had committed before
  // the call. Errors as Current's; FailedPrecondition where one does not follow.
  absl::StatusOr<std::vector<std::shared_ptr<const IndexVersion>>> CurrentTogether(
      absl::Span<const std::shared_ptr<FollowedIndex>> indexes);
  // An index at one state, which has all that had committed before the call, and a snapshot of the
  // database at the same sequence number. Errors as Current's; FailedPrecondition if the database
  // does not support snapshots.
  struct State {
    std::shared_ptr<const IndexVersion> version;
    std::shared_ptr<rocksdb::ManagedSnapshot> snapshot;
  };
  absl::StatusOr<State> CurrentState(const FollowedIndex& index);
  // Waits while the indexes are so far behind that they take longer than this to be current, and
  // sets how long; if not `may_wait`, returns false instead. Otherwise this costs some nanoseconds.
  bool LimitBacklog(absl::Duration longest, bool may_wait, absl::Duration* waited);

  // Takes in indexes with writers, distinct ones that are no members, and returns how that ended
  // for each. It returns when they have caught up. The log is read once for all. Other members wait
  // as long, so that these should be near the end; but they do not wait for the checks before and
  // after, whose time grows with the database's files. The database must be open until it returns.
  //
  // Errors: FailedPrecondition if the database does not continue an index's state, or if files were
  // ingested since (not looked for if kUnchecked); Cancelled if the index or this is; errors of the
  // index's rows. An index that cannot join does no harm to the others.
  enum class Ingested : uint8_t { kChecked, kUnchecked };
  std::vector<absl::Status> Join(absl::Span<const std::shared_ptr<FollowedIndex>> indexes,
                                 Ingested ingested = Ingested::kChecked);
  void Leave(const FollowedIndex& index);
  // Has those that `is_failing` returns true for leave, for this reason.
  void Fail(absl::FunctionRef<bool(const FollowedIndex&)> is_failing, const absl::Status& why);

  // The log may have a record that the database has not: all leave, before any of them has more of
  // the log. Waits for nothing, so that it may be called from within a call into the database.
  void Doubt() { doubted_ = true; }

  // A file that was ingested has taken this sequence number, which is therefore not in the log: all
  // indexes but its column family's go on behind it. Waits for nothing.
  void NoteIngested(SequenceNumber sequence);
  // Between these two, files are ingested: if a number is missing in the log by then, the follower
  // waits a moment for NoteIngested. What is done between them must not use the follower.
  void BeginIngestion();
  void EndIngestion();

  // Sequence numbers that the members have still to come to; 0 without members.
  SequenceNumber Behind() const;
  // When the indexes were last known to have everything. Now, where there is none.
  absl::Time current_at() const;
  // The number of the log's file that reading has come to, or a lower one; 0 without members.
  uint64_t log_number() const;

  // Returns once a call that may be losing indexes now has lost all that it loses.
  void AwaitCall() const { const MutexLock lock(&mutex_); }

  const LiveLog& live_log() const { return live_; }

  // The database's sequence number. FailedPrecondition once this is closed.
  absl::StatusOr<SequenceNumber> Latest() const;

  // Ends following, and waits until that is so; the database is not used afterwards.
  void Close();

 private:
  struct Family {
    rocksdb::ColumnFamilyHandle* handle;
    SettledChanges settled;
    std::unique_ptr<SnapshotSource> source;  // for rows to be looked up
  };
  // What an index knows of ingested files (Anchor).
  struct KnownFiles {
    uint64_t ingested_file = 0;  // the newest
    std::shared_ptr<const TableFiles> tables;
  };
  // An index that follows, and how its rows' keys are taken.
  struct Member {
    std::shared_ptr<FollowedIndex> index;
    std::unique_ptr<ChangeExtractor> extractor;
    std::unique_ptr<RowUpdates> updates;
    // It takes part once reading has come to `from`, which was at `position` of the log.
    SequenceNumber from = 0;
    LogPosition position;
    KnownFiles known;
    absl::Status* joining = nullptr;  // of an index in Join: what becomes of it
  };
  // Indexes that are brought from one state to another, while nobody else may.
  struct Updates {
    std::vector<std::unique_ptr<IndexWriter::Update>> of_member;  // null where it has failed
    std::vector<absl::Status> status;                             // why
  };

  // Brings the indexes up to `sequence`, and on to what has been committed by then, or waits until
  // others have brought them there.
  absl::Status Follow(SequenceNumber sequence);

  // Makes sure that the database continues the index's state, and has the index's anchor say so.
  absl::StatusOr<Member> Admit(const std::shared_ptr<FollowedIndex>& index);
  // Brings one index, which nothing else writes to, to the database's state of now.
  absl::Status CatchUpAlone(const FollowedIndex& index) const;
  // Removes from those that were admitted the ones whose column families have gone, and says so.
  absl::Status LoseThoseOfGoneFamilies(std::vector<Member>* admitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes from those that were admitted the ones that are members, and says so.
  void RefuseMembers(std::vector<Member>* admitted) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes in those that were admitted, and brings all to one state. Returns a snapshot of that, or
  // null and has said why.
  std::shared_ptr<rocksdb::ManagedSnapshot> TakeIn(std::vector<Member>* admitted);
  // Has those leave that lack rows of files that are newer than the ones that they know.
  void CheckIngested(absl::Span<const std::shared_ptr<FollowedIndex>> indexes,
                     absl::Span<const KnownFiles> known, SequenceNumber until,
                     absl::Span<absl::Status> status);

  // Whether reading has come to where the member is.
  bool TakesPart(const Member& member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return member.from <= tail_->sequence();
  }
  // Brings the indexes to a state: each says what became of it.
  void FollowTo(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Follows up to some place where the indexes can be published, and publishes them.
  absl::Status Step(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Advance(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot,
                       Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies changes_, which begin behind `start`, to those that take part there.
  absl::Status ApplySlice(SequenceNumber start,
                          const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                          Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees what a slice of the log took, of a family.
  void GiveBackMemory(size_t family) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status ApplyTo(const Member& member, const Family& family,
                              IndexWriter::Update* update);
  void Publish(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The ids of the database's column families.
  absl::StatusOr<std::set<uint32_t>> LiveFamilies() {
    const MutexLock lock(&manifest_mutex_);
    return manifest_.Read();
  }
  // Gives up the indexes whose column families have gone, if the log may show that.
  absl::Status CheckFamilies(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Goes on to the last of the ingested numbers that come next, up to `until`.
  void PassIngested(SequenceNumber until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first ingested number behind `sequence`; the largest number if there is none.
  SequenceNumber NextIngested(SequenceNumber sequence) const;
  // How many numbers have been noted. Waits a moment for ingestions that are in progress to end.
  uint64_t CountIngested(bool wait);
  // If this has been doubted, has all leave.
  void HeedDoubt();
  void Lose(const Member& member, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has those leave that take part where reading stands.
  void FailReaders(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads for the members' column families from where the lowest of them is. If there is no memory
  // for that, none follows.
  void RestartTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the members note where reading has brought them.
  void EndTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeTail() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells those who wait how far reading has come.
  void NoteProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  const LiveLog live_;
  const OnLost on_lost_;
  const Publishing publishing_;
  LogFollower* const told_;  // of ingestions; null: this

  // Held, shared, while the database is used without mutex_.
  mutable std::shared_mutex use_mutex_;
  std::atomic<bool> closed_{false};  // set under both
  std::atomic<bool> doubted_{false};

  // Up to where the indexes are; the largest number where there is none.
  std::atomic<SequenceNumber> followed_;
  // Sequence numbers that are followed; at first, a guess.
  std::atomic<double> per_second_{500000};

  mutable Mutex mutex_;  // locked before the two others
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  std::vector<Family> families_ ABSL_GUARDED_BY(mutex_);     // of the members
  std::vector<RowChanges> changes_ ABSL_GUARDED_BY(mutex_);  // of families_, of the slice at hand
  std::unique_ptr<LogTail> tail_ ABSL_GUARDED_BY(mutex_);    // null without members
  bool watches_families_ = false;
  // The largest id in the log when the column families were checked last.
  uint32_t newest_family_ ABSL_GUARDED_BY(mutex_) = 0;
  Mutex manifest_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  ManifestFamilies manifest_ ABSL_GUARDED_BY(manifest_mutex_);

  mutable Mutex ingested_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  CondVar ingestion_ended_;
  std::set<SequenceNumber> ingested_ ABSL_GUARDED_BY(ingested_mutex_);
  uint64_t ingested_count_ ABSL_GUARDED_BY(ingested_mutex_) = 0;  // noted so far
  int ingestions_ ABSL_GUARDED_BY(ingested_mutex_) = 0;           // in progress

  mutable Mutex progress_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  bool following_ ABSL_GUARDED_BY(progress_mutex_) = false;  // somebody is in FollowTo
  absl::Time current_at_ ABSL_GUARDED_BY(progress_mutex_);
  CondVar progressed_;
};

}  // namespace cairn
