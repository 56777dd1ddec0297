#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/log_follower.h"
#include "rocksdb/db.h"

namespace cairn {

// Builds indexes of a database that is written to, and lets them follow it: one after the other, on
// a thread of its own. Thread-safe.
//
// While one is built from a snapshot, the log goes on. It is kept from that snapshot on; what is in
// it is then caught up with, which is the faster the less there is, until so little is left that
// the others can wait for it in LogFollower::Join.
class IndexUpkeep {
 public:
  // All must outlive this.
  IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options, const IndexCatalog* catalog,
              LogFollower* follower);
  ~IndexUpkeep();

  // Has the index caught up, and follow from then on, before this returns. Where that cannot be, it
  // is stale or has failed.
  void CatchUp(const std::shared_ptr<FollowedIndex>& index);
  // Has the index built anew, soon. What it was until then stays pinned by those who have it.
  void Build(const std::shared_ptr<FollowedIndex>& index);
  // As options.on_stale says for an index that has become stale: Build, after an attempt to catch
  // up; or nothing.
  void Repair(const std::shared_ptr<FollowedIndex>& index);

  // Ends what is being done, and returns when that is so. Nothing is begun afterwards.
  void Stop();

 private:
  struct Job {
    std::shared_ptr<FollowedIndex> index;
    bool catch_up_first;
    absl::Time due;
    absl::Duration wait;  // of the next attempt, where this one fails
  };

  void Enqueue(Job job);
  void RunJobs();
  void Run(const Job& job);
  absl::Status TryCatchUp(const std::shared_ptr<FollowedIndex>& index);
  absl::Status TryBuild(const std::shared_ptr<FollowedIndex>& index);
  absl::Status CatchUpAndJoin(const std::shared_ptr<FollowedIndex>& index, uint64_t disruptions);

  rocksdb::DB* const db_;
  const IndexedDBOptions& options_;
  const IndexCatalog& catalog_;
  LogFollower* const follower_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::shared_ptr<FollowedIndex> at_work_;
  bool stopped_ = false;
  std::thread thread_;
};

// Calls a function every so often, on a thread of its own, until the end of its life.
class Periodically {
 public:
  Periodically(absl::Duration interval, std::function<void()> function);
  ~Periodically();

 private:
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cairn
