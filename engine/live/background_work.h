#pragma once

#include <memory>

#include "absl/status/status.h"
#include "cairn/indexed_db.h"
#include "cairn/types.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_list.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/transaction_views.h"
#include "engine/source/manifest_watch.h"
#include "engine/util/periodically.h"
#include "rocksdb/db.h"

namespace cairn {

// The periodic work on a database's indexes: following its log, storing the indexes, and merging
// them. Thread-safe.
class BackgroundWork {
 public:
  // All arguments must outlive this.
  BackgroundWork(rocksdb::DB* db, const IndexedDBOptions& options, const IndexList* indexes,
                 LogFollower* follower, LogRetention* retention, TransactionViews* views)
      : db_(db),
        options_(options),
        indexes_(*indexes),
        follower_(follower),
        retention_(retention),
        views_(views) {}

  void Start();
  // Returns once no work is in progress. Setting an index's `cancelled` speeds this up.
  void Stop();

  // Must be called before each write: the log of an idle database is read less often.
  void ExpectWrite() {
    if (following_ != nullptr) following_->Hasten();
  }

  // Writes the changes of all ready indexes to their directories.
  absl::Status StoreAll();
  absl::Status Store(FollowedIndex* index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(index->work_mutex());
  absl::Status Compact(FollowedIndex* index);

 private:
  void Follow();
  // Follows; returns whether the database has changed since the last call.
  bool FollowChanges();
  void KeepLogShort();
  void MergeWhatPays();
  absl::Status Tidy(FollowedIndex* index);

  rocksdb::DB* const db_;
  const IndexedDBOptions& options_;
  const IndexList& indexes_;
  LogFollower* const follower_;
  LogRetention* const retention_;
  TransactionViews* const views_;

  std::unique_ptr<Periodically> following_;  // set by Start; ExpectWrite uses it at any time
  SequenceNumber followed_ = 0;              // by FollowChanges
  std::unique_ptr<Periodically> keeping_;
  std::unique_ptr<ManifestWatch> watching_;
  std::unique_ptr<Periodically> storing_;
  std::unique_ptr<Periodically> merging_;
};

}  // namespace cairn
