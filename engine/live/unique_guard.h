#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "engine/live/followed_index.h"
#include "engine/live/log_follower.h"
#include "engine/log/row_changes.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// Writes batches of which no unique index gets a key twice. Those that touch a column family with
// such an index are written one at a time, each after the index has all that was written before.
// An index that is not ready refuses nothing. Thread-safe.
class UniqueGuard {
 public:
  UniqueGuard(rocksdb::DB* db, LogFollower* follower) : db_(db), follower_(follower) {}

  // Those of `indexes` that are unique are looked after from now on.
  void Watch(const std::vector<std::shared_ptr<FollowedIndex>>& indexes);
  bool idle() const { return idle_.load(std::memory_order_acquire); }

  // InvalidArgument, naming the index, the key and both rows, and nothing is written, where a key
  // would be there twice, or where a row cannot be read under ErrorPolicy::kFail. NotSupported for
  // merge operands, of which nobody can tell what they will make of a row.
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch);

 private:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;

  std::shared_ptr<const Indexes> watched() const {
    const MutexLock lock(&watched_mutex_);
    return watched_;
  }
  absl::Status Check(const Indexes& indexes, const std::vector<uint32_t>& families,
                     const std::vector<RowChanges>& changes);
  absl::Status CheckIndex(const FollowedIndex& index, const RowChanges& changes);

  rocksdb::DB* const db_;
  LogFollower* const follower_;
  mutable Mutex watched_mutex_;
  std::shared_ptr<const Indexes> watched_ ABSL_GUARDED_BY(watched_mutex_);  // null at first
  std::atomic<bool> idle_{true};                                            // nothing is watched
  Mutex write_mutex_;  // held from a check to the end of its write
};

}  // namespace cairn
