#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/index_writer.h"
#include "engine/live/followed_index.h"
#include "engine/log/log_tail.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace cairn {

// Keeps a database's indexes current by reading its log: once for all of them, and for as much as
// is there, so that those who wait for it wait together. All its indexes are at one sequence
// number.
//
// One that cannot go on leaves, and becomes stale; or has failed, where only its rows, not another
// attempt, can help: AlreadyExists, InvalidArgument, Unimplemented. Where the log does not go on,
// that is all of them. Thread-safe.
class LogFollower {
 public:
  // `on_stale` is called for each index that has become stale, in the middle of a call of this
  // object, which it may not use.
  LogFollower(rocksdb::DB* db, std::function<void(const std::shared_ptr<FollowedIndex>&)> on_stale);
  ~LogFollower();

  // Brings the indexes up to `sequence`, or further. That they have got there says each of them.
  // FailedPrecondition once this is closed.
  absl::Status Follow(SequenceNumber sequence);
  // Up to all that has been committed.
  absl::Status Follow();
  // The index at what all had committed that returned before the call; why it cannot be had else:
  // FollowedIndex::Ready, Follow.
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> Current(const FollowedIndex& index);

  // Takes in an index with a writer, once it has caught up from wherever it is: others wait
  // meanwhile, so it should be near the end. Errors as CatchUp's; Aborted where its rows have
  // changed otherwise (FollowedIndex::disruptions is not `disruptions`). It is then ready.
  absl::Status Join(const std::shared_ptr<FollowedIndex>& index, uint64_t disruptions);
  void Leave(const FollowedIndex& index);
  // Makes all indexes stale, or failed, those of one column family or, where that is null, all.
  void Fail(rocksdb::ColumnFamilyHandle* column_family, const absl::Status& why);

  // When the indexes were last known to have everything. Now, where there is none.
  absl::Time current_at() const;
  // The number of the log's file that reading has come to; 0 for none.
  uint64_t log_number() const;

  // Ends following; the database is not used afterwards.
  void Close();

 private:
  struct Family {
    rocksdb::ColumnFamilyHandle* handle;
    SettledChanges settled;
    std::unique_ptr<SnapshotSource> source;  // for rows to be looked up
  };
  // Indexes that are brought from one state to another, while nobody else may.
  struct Updates;

  // All of these need mutex_.
  absl::Status FollowTo(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot);
  absl::Status Advance(SequenceNumber until, std::shared_ptr<rocksdb::ManagedSnapshot> snapshot,
                       Updates* updates);
  absl::Status ApplySlice(const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                          Updates* updates);
  absl::Status ApplyTo(FollowedIndex* index, const Family& family, IndexWriter::Update* update);
  void FailAll(const absl::Status& why);
  void Fail(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why);
  // Reads for the members' column families from `sequence` on.
  void RestartTail(SequenceNumber sequence, LogPosition position);

  rocksdb::DB* const db_;
  const std::function<void(const std::shared_ptr<FollowedIndex>&)> on_stale_;

  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::vector<std::shared_ptr<FollowedIndex>> members_;
  std::vector<Family> families_;     // of the members
  std::vector<RowChanges> changes_;  // of families_, of the slice that is at hand
  std::unique_ptr<LogTail> tail_;    // null without members
  absl::Time current_at_;
};

}  // namespace cairn
