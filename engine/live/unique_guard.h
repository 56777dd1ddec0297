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

// Writes batches such that no unique index gets a key twice.
//
// A write reserves the keys that its rows will have, in an in-memory set, until it has ended. A
// write of one of these keys waits; all others continue, even if the first one waits in the
// database. Once its keys are reserved, a write is checked against the index. The index contains
// all finished writes of these keys, and no other such write is in progress. All keys of a write
// are reserved in one step, so writes cannot wait for each other in a cycle.
//
// During the first build of an index nothing is checked, and the build fails if two rows have one
// key. Once the index has been ready, and until it is dropped, a write that puts rows is refused if
// the index cannot check them. This is so while it is rebuilt or catches up, or if it is stale or
// has failed. Deletions need no check. Thread-safe.
class UniqueGuard {
 public:
  // Writes go to `db`. Rows are read from `stored`, which returns them as they are stored: `db` or
  // a database below it.
  UniqueGuard(rocksdb::DB* db, rocksdb::DB* stored, LogFollower* follower)
      : db_(db), stored_(stored), follower_(follower) {}

  // The database that writes go to, with all its layers.
  rocksdb::DB* db() const { return db_; }

  // Watches the unique ones of `indexes` from now on.
  void Watch(const std::vector<std::shared_ptr<FollowedIndex>>& indexes);
  bool idle() const { return idle_.load(std::memory_order_acquire); }
  // If nothing is watched, returns true: a write may bypass this guard until EndPast, and Admit
  // waits for it.
  bool BeginPast() {
    if (!idle()) return false;
    ++past_;
    if (idle_.load()) return true;
    --past_;
    return false;
  }
  void EndPast() { --past_; }

  // Checks and writes a batch. On error nothing is written. Errors, in addition to the database's
  // own:
  // - InvalidArgument, with the index, the key and both rows, if an index would have a key twice;
  //   also if a row cannot be read under ErrorPolicy::kFail;
  // - NotSupported for merge operands, whose result is unknown before the write;
  // - TryAgain, with the index, if the rows cannot be checked against this index now;
  // - Incomplete if another write has reserved a key and this one must not wait (no_slowdown).
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
    return Write(options, batch, [&] { return db_->Write(options, batch); });
  }
  // As above, but calls `write` to write the checked batch. `write` may suspend indexes.
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                        absl::FunctionRef<rocksdb::Status()> write);

  // Lets an index that has caught up become ready, through `make_ready`, such that no unchecked
  // write ends afterwards. Waits for writes in progress, has the index apply them, and delays new
  // ones until then. Errors: those of `make_ready`, and Aborted if the index is lost.
  absl::Status Admit(FollowedIndex* index, absl::FunctionRef<absl::Status()> make_ready);

 private:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;
  // A write's rows, as one index reads them.
  struct Rows {
    const FollowedIndex* index;
    RowUpdates updates;
    absl::Status status;  // why the rows cannot be checked, regardless of the index's contents
  };
  // The reservations of a write in progress.
  struct Hold {
    std::vector<std::string> keys;
    std::vector<const FollowedIndex*> unchecked;  // indexes in their first build
  };

  std::shared_ptr<const Indexes> watched() const {
    const MutexLock lock(&watched_mutex_);
    return watched_;
  }
  // Appends to *rows one element for each index whose rows the batch puts.
  absl::Status ReadRows(const Indexes& indexes, const rocksdb::WriteBatch& batch,
                        std::vector<Rows>* rows) const;
  bool MustWait(const std::vector<Rows>& rows, const std::vector<std::string>& keys) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false if it would have to wait but must not. Throws std::bad_alloc, and then nothing is
  // reserved.
  bool Reserve(const std::vector<Rows>& rows, bool may_wait, Hold* hold);
  void Release(const Hold& hold);
  rocksdb::Status Check(const Rows& rows);
  // Returns whether a write is in progress that began before the index was watched.
  bool IsMissedByWrites(const FollowedIndex& index);

  rocksdb::DB* const db_;
  rocksdb::DB* const stored_;
  LogFollower* const follower_;
  mutable Mutex watched_mutex_;
  std::shared_ptr<const Indexes> watched_ ABSL_GUARDED_BY(watched_mutex_);  // null at first
  // Former watched lists. Each write holds its list until it ends.
  std::vector<std::weak_ptr<const Indexes>> former_ ABSL_GUARDED_BY(watched_mutex_);
  std::atomic<bool> idle_{true};   // nothing is watched
  std::atomic<uint64_t> past_{0};  // writes in progress that bypass this guard

  Mutex mutex_;
  CondVar released_;
  std::unordered_set<std::string> reserved_ ABSL_GUARDED_BY(mutex_);
  // Counts of unchecked writes in progress, and indexes that are about to be ready.
  std::map<const FollowedIndex*, uint64_t> unchecked_ ABSL_GUARDED_BY(mutex_);
  std::vector<const FollowedIndex*> admitting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
