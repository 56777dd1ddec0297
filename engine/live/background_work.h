#pragma once

#include <memory>

#include "absl/status/status.h"
#include "cairn/indexed_db.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_list.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/util/periodically.h"

namespace cairn {

// What is done for a database's indexes every so often: they follow its log, are stored, and are
// merged. Thread-safe.
class BackgroundWork {
 public:
  // All must outlive this.
  BackgroundWork(const IndexedDBOptions& options, const IndexList* indexes, LogFollower* follower,
                 LogRetention* retention)
      : options_(options), indexes_(*indexes), follower_(follower), retention_(retention) {}

  void Start();
  // Returns when nothing is being done any more, which an index's `cancelled` hastens.
  void Stop();

  // Writes what came to the indexes to their directories; those that are not ready have nothing.
  absl::Status StoreAll();
  absl::Status Store(FollowedIndex* index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(index->work_mutex());
  absl::Status Compact(FollowedIndex* index);

 private:
  void Follow();
  void KeepLogShort();
  void MergeWhatPays();
  absl::Status Tidy(FollowedIndex* index);

  const IndexedDBOptions& options_;
  const IndexList& indexes_;
  LogFollower* const follower_;
  LogRetention* const retention_;

  std::unique_ptr<Periodically> following_;
  std::unique_ptr<Periodically> keeping_;
  std::unique_ptr<Periodically> watching_;
  std::unique_ptr<Periodically> storing_;
  std::unique_ptr<Periodically> merging_;
};

}  // namespace cairn
