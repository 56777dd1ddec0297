#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/delta/row_updates.h"
#include "engine/live/followed_index.h"
#include "engine/live/log_follower.h"
#include "engine/log/row_changes.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// Writes batches of which no unique index gets a key twice.
//
// A write reserves the keys that its rows will have, in a set in memory, until it has ended. A
// write of one of these keys waits for that; all others go on, whatever the first one waits for in
// the database. With its keys reserved a write is checked against the index, which has every write
// of these keys that has ended by then, and no other can be in progress. All of a write's keys are
// reserved in one step, so that writes do not wait for each other in a circle.
//
// An index that is being built for the first time checks nothing, and its build fails if rows have
// one key. From the moment that it is ready, until it is dropped, a write is refused if it puts
// rows and the index cannot check them, as it is rebuilt, catches up, is stale or has failed.
// Deletions need no check. Thread-safe.
class UniqueGuard {
 public:
  UniqueGuard(rocksdb::DB* db, LogFollower* follower) : db_(db), follower_(follower) {}

  // The unique ones of `indexes` are watched from now on.
  void Watch(const std::vector<std::shared_ptr<FollowedIndex>>& indexes);
  bool idle() const { return idle_.load(std::memory_order_acquire); }
  // If nothing is watched, true: a write may go past this until EndPast, and Admit waits for it.
  bool BeginPast() {
    if (!idle()) return false;
    ++past_;
    if (idle_.load()) return true;
    --past_;
    return false;
  }
  void EndPast() { --past_; }

  // On an error nothing is written. Errors, besides the database's own:
  // - InvalidArgument, naming the index, the key and both rows, if an index would have a key twice;
  //   or if a row cannot be read under ErrorPolicy::kFail;
  // - NotSupported for merge operands, whose result is unknown before the write;
  // - TryAgain, naming the index, if it cannot check the rows now;
  // - Incomplete if another write holds a key, and this one must not wait (no_slowdown).
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);

  // Lets an index that has caught up become ready, by `make_ready`, so that no write that it has
  // not checked ends afterwards: waits for those in progress, has the index apply them, and holds
  // up new ones meanwhile. Errors: those of `make_ready`, and Aborted if the index is lost.
  absl::Status Admit(FollowedIndex* index, absl::FunctionRef<absl::Status()> make_ready);

 private:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;
  // A write's rows as one index sees them.
  struct Rows {
    const FollowedIndex* index;
    RowUpdates updates;
    absl::Status status;  // why they cannot be checked, whatever the index has
  };
  // What a write holds while it is in progress.
  struct Hold {
    std::vector<std::string> keys;
    std::vector<const FollowedIndex*> unchecked;  // indexes that are built for the first time
  };

  std::shared_ptr<const Indexes> watched() const {
    const MutexLock lock(&watched_mutex_);
    return watched_;
  }
  // Appends the rows that the batch puts, for each index that has such.
  static absl::Status ReadRows(const Indexes& indexes, const rocksdb::WriteBatch& batch,
                               std::vector<Rows>* rows);
  bool MustWait(const std::vector<Rows>& rows, const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if it would have to wait and must not. Throws std::bad_alloc, and holds nothing then.
  bool Reserve(const std::vector<Rows>& rows, bool may_wait, Hold* hold);
  void Release(const Hold& hold);
  rocksdb::Status Check(const Rows& rows);
  // Whether a write is in progress that began before the index was watched.
  bool IsMissedByWrites(const FollowedIndex& index);

  rocksdb::DB* const db_;
  LogFollower* const follower_;
  mutable Mutex watched_mutex_;
  std::shared_ptr<const Indexes> watched_ ABSL_GUARDED_BY(watched_mutex_);  // null at first
  // What was watched before; a write has its own until it ends.
  std::vector<std::weak_ptr<const Indexes>> former_ ABSL_GUARDED_BY(watched_mutex_);
  std::atomic<bool> idle_{true};   // nothing is watched
  std::atomic<uint64_t> past_{0};  // writes that go past this

  Mutex mutex_;
  CondVar released_;
  std::unordered_set<std::string> reserved_ ABSL_GUARDED_BY(mutex_);
  // Writes in progress that indexes have not checked, and indexes that are about to be ready.
  std::map<const FollowedIndex*, uint64_t> unchecked_ ABSL_GUARDED_BY(mutex_);
  std::vector<const FollowedIndex*> admitting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
