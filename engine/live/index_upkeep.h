#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/past_log_changes.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// Builds indexes of a database that is written to, and lets them follow it: one after the other, on
// a thread of its own. Thread-safe.
//
// What is done to an index is what is wanted of it, as its mark says: to catch up and follow; to be
// built, by CreateIndex or RebuildIndex; or, where it is stale, to be built if OnStale says so. An
// attempt that fails is made again, after a wait that doubles, unless only other rows, another spec
// or somebody's help would do.
//
// While an index is built from a snapshot, the log goes on. It is kept from that snapshot on
// (LogRetention); what is in it is then caught up with, which is the faster the less there is,
// until so little is left that the others can wait for it in LogFollower::Join.
class IndexUpkeep {
 public:
  // Makes an index that has everything ready by calling the function, whose error it returns.
  using Admit = std::function<absl::Status(FollowedIndex*, absl::FunctionRef<absl::Status()>)>;

  // All must outlive this. `define` reads what an index is that is not defined yet.
  IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options, const IndexCatalog* catalog,
              LogFollower* follower, LogRetention* retention, PastLogChanges* changes,
              std::function<absl::Status(FollowedIndex*)> define, Admit admit);
  ~IndexUpkeep();

  // There may be so many indexes soon: what is called for these below throws nothing.
  void MakeRoomFor(size_t indexes);
  // Has an index that the catalog has do what is wanted of it: catches it up, so that it follows
  // before this returns, or has it built soon.
  void Start(const std::shared_ptr<FollowedIndex>& index);
  // Has what is wanted of an index done, soon. What it was until then stays pinned by those who
  // have it.
  void Work(const std::shared_ptr<FollowedIndex>& index);
  // An index that followed cannot, for this reason: sets its state, and has it repaired if that is
  // to be.
  void Lost(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why);

  // Ends what is being done, and returns when that is so. Nothing is begun afterwards.
  void Stop();

 private:
  struct Job {
    std::shared_ptr<FollowedIndex> index;
    absl::Time due;
    absl::Duration wait;  // of the next attempt, where this one fails
    int failures = 0;     // before this one
  };
  enum class Then { kStale, kFailed, kAgain };  // what an index is after an error

  void Schedule(Job job);  // one repair of the index has begun
  void RunJobs();
  void Run(const Job& job);
  // Does what is wanted of the index, once.
  absl::Status Attempt(const std::shared_ptr<FollowedIndex>& index, int failures, Then* then);
  absl::Status TryCatchUp(const std::shared_ptr<FollowedIndex>& index);
  // `fits` is set where the rows and the spec can make an index: where then something comes
  // between, another attempt may do better.
  absl::Status TryBuild(const std::shared_ptr<FollowedIndex>& index, bool* fits);
  absl::Status BuildFiles(const std::shared_ptr<FollowedIndex>& index);
  // Gets the database past the records of writes that have failed, so that a snapshot has all
  // sequence numbers that they may have taken, and the log goes on in another file.
  absl::Status PassFailedWrites(const FollowedIndex& index);
  absl::Status CatchUpAndJoin(const std::shared_ptr<FollowedIndex>& index);
  // Makes an index that has joined ready, if `wanted` and `changes`, as they were when the attempt
  // began, are so still: else Aborted.
  absl::Status Finish(const std::shared_ptr<FollowedIndex>& index, IndexMark::Kind wanted,
                      uint64_t changes, bool built);

  rocksdb::DB* const db_;
  const IndexedDBOptions& options_;
  const IndexCatalog& catalog_;
  LogFollower* const follower_;
  LogRetention* const retention_;
  PastLogChanges* const changes_;
  const std::function<absl::Status(FollowedIndex*)> define_;
  const Admit admit_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Job> jobs_ ABSL_GUARDED_BY(mutex_);  // one an index, with room for all that there are
  std::shared_ptr<FollowedIndex> at_work_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cairn
