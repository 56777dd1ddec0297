#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/live/followed_index.h"
#include "engine/version/index_version.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"
#include "rocksdb/snapshot.h"

namespace cairn {

// The snapshots that callers hold (IndexedDB::GetSnapshot), and the versions of the indexes at
// their sequence numbers.
//
// Taking a snapshot does not wait for the indexes. The follower of the log stops at the sequence
// number of each snapshot and stores the versions (Reach). It never passes a snapshot: it follows
// up to sequence numbers that the database had before, and asks Next before each step. Thread-safe.
class KeptSnapshots {
 public:
  explicit KeptSnapshots(rocksdb::DB* db) : db_(db) {}
  // Snapshots that their owners have not released stay held by the database.
  ~KeptSnapshots();
  KeptSnapshots(const KeptSnapshots&) = delete;
  KeptSnapshots& operator=(const KeptSnapshots&) = delete;

  // Returns a new snapshot of the database, or null if the database does not support them. Throws
  // std::bad_alloc.
  const rocksdb::Snapshot* Take();
  // Releases a snapshot and the versions. Returns false if Take has not returned it.
  bool Release(const rocksdb::Snapshot* snapshot);

  // Returns the snapshot with the lowest sequence number that the follower has not reached; null if
  // there is none. Costs one load then.
  std::shared_ptr<rocksdb::ManagedSnapshot> Next() const;
  // Returns Next() if it is not before `sequence`, or else a new snapshot that callers do not hold.
  // The follower does not pass either of them. Throws std::bad_alloc.
  std::shared_ptr<rocksdb::ManagedSnapshot> NextOrNew(SequenceNumber sequence) const;
  // Stores the versions at a snapshot from Next.
  using Versions = std::map<const FollowedIndex*, std::shared_ptr<const IndexVersion>>;
  void Reach(const rocksdb::ManagedSnapshot& snapshot, Versions versions) noexcept;
  // Drops all versions of an index, which can no longer vouch for them, or of all indexes.
  void Forget(const FollowedIndex& index) noexcept;
  void ForgetAll() noexcept;

  // A snapshot and the version of one index. The snapshot is null if Take has not returned it, and
  // the version is null if it is not known.
  struct Found {
    std::shared_ptr<rocksdb::ManagedSnapshot> snapshot;
    bool reached = false;
    std::shared_ptr<const IndexVersion> version;
  };
  Found Find(const rocksdb::Snapshot* snapshot, const FollowedIndex& index) const;

 private:
  struct Kept {
    std::shared_ptr<rocksdb::ManagedSnapshot> snapshot;
    bool reached = false;
    Versions versions;
  };
  // Returns the first snapshot that has not been reached. They are reached in order.
  std::shared_ptr<rocksdb::ManagedSnapshot> NextLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  rocksdb::DB* const db_;
  // The number of snapshots that have not been reached. It counts a snapshot before the database
  // takes it. So a follower that knows a later sequence number sees a number above 0, and waits for
  // mutex_.
  std::atomic<size_t> unreached_{0};
  mutable Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // in the order of their sequence numbers
};

}  // namespace cairn
