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
// One that cannot go on leaves. Where the log does not go on, that is all of them. Thread-safe,
// also beside Close.
class LogFollower {
 public:
  // `on_lost` is called for each index that has left so, and why, in the middle of a call of this
  // object, which it may not use. It is to set the index's state, and throws nothing.
  LogFollower(
      rocksdb::DB* db,
      std::function<void(const std::shared_ptr<FollowedIndex>&, const absl::Status&)> on_lost);
  ~LogFollower();

  // Watches for column families that are dropped and made again past the object. That shows in the
  // log with the first record of the new one, whose id is larger than all before. To be called
  // before the first Join.
  void WatchFamilies() { watches_families_ = true; }

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
  // Waits while the indexes are so far behind that they take longer than this to be current; if
  // not `may_wait`, returns false instead. Otherwise this costs some nanoseconds.
  bool LimitBacklog(absl::Duration longest, bool may_wait);

  // Takes in an index with a writer, once it has caught up from wherever it is: others wait
  // meanwhile, so it should be near the end. Errors as CatchUp's.
  absl::Status Join(const std::shared_ptr<FollowedIndex>& index);
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

  // When the indexes were last known to have everything. Now, where there is none.
  absl::Time current_at() const;
  // The number of the log's file that reading has come to; 0 for none.
  uint64_t log_number() const;

  // What was known of the log when this object was made: what recovery left, before any write that
  // an index can miss.
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
  // An index that follows, and how its rows' keys are taken.
  struct Member {
    std::shared_ptr<FollowedIndex> index;
    std::unique_ptr<ChangeExtractor> extractor;
    std::unique_ptr<RowUpdates> updates;
  };
  // Indexes that are brought from one state to another, while nobody else may.
  struct Updates;

  // Brings the indexes up to `sequence`, and on to what has been committed by then, or waits until
  // others have brought them there.
  absl::Status Follow(SequenceNumber sequence);

  absl::Status FollowTo(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Follows up to some place where the indexes can be published, and publishes them.
  absl::Status Step(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Advance(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot,
                       Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ApplySlice(const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                          Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status ApplyTo(const Member& member, const Family& family,
                              IndexWriter::Update* update);
  void Publish(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives up the indexes whose column families have gone, if the log may show that.
  absl::Status CheckFamilies(Updates* updates) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Goes on to the last of the ingested numbers that come next.
  absl::Status PassIngested() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first ingested number behind `sequence`; the largest number if there is none.
  SequenceNumber NextIngested(SequenceNumber sequence) const;
  // How many numbers have been noted. Waits a moment for ingestions that are in progress to end.
  uint64_t CountIngested(bool wait);
  // If this has been doubted, has all leave.
  void HeedDoubt();
  // Reads for the members' column families from `sequence` on. Where there is no memory for that,
  // none follows.
  void RestartTail(SequenceNumber sequence, LogPosition position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeTail(SequenceNumber sequence, LogPosition position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells those who wait how far reading has come.
  void NoteProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  const LiveLog live_;
  const std::function<void(const std::shared_ptr<FollowedIndex>&, const absl::Status&)> on_lost_;

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
