#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/indexed_db.h"
#include "engine/live/followed_index.h"
#include "engine/live/index_catalog.h"
#include "engine/live/log_follower.h"
#include "engine/live/log_retention.h"
#include "engine/live/past_log_changes.h"
#include "engine/log/older_logs.h"
#include "engine/log/unlogged_writes.h"
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// Builds indexes of a database that is being written to, and makes them follow it, on its own
// thread. If several indexes of one column family are due, one scan of its rows builds them
// together. Thread-safe.
//
// An index's mark determines the work on it: catching up and following; a build, after CreateIndex
// or RebuildIndex; or, if it is stale, a build if OnStale requires it. A failed attempt is repeated
// after a wait that doubles. It is not repeated if only other rows, another spec, other options of
// the database or help from the user can fix the failure.
//
// While an index is built from a snapshot, the log grows. It is kept from that snapshot on
// (LogRetention). Then the index catches up in rounds, each shorter than the last one, until so
// little is left that the other indexes can wait for it in LogFollower::Join.
class IndexUpkeep {
 public:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;
  // Makes an index ready once everything else is done, by calling the function. Returns the
  // function's error.
  using Admit = std::function<absl::Status(FollowedIndex*, absl::FunctionRef<absl::Status()>)>;

  // All arguments must outlive this. `define` reads the spec of an index that has none yet.
  IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options, const IndexCatalog* catalog,
              LogFollower* follower, LogRetention* retention, PastLogChanges* changes,
              std::function<absl::Status(FollowedIndex*)> define, Admit admit);
  ~IndexUpkeep();

  // Reserves memory for this number of indexes. Then the calls below for them throw nothing, except
  // Start.
  void MakeRoomFor(size_t indexes);
  // Starts the work that the marks of the catalog's indexes require. Indexes that can catch up do
  // so together, and follow before this returns. Others are built soon.
  void Start(const Indexes& indexes);
  // Schedules the work that the indexes' marks require. Callers that have pinned the indexes keep
  // the state that they pinned.
  void Work(absl::Span<const std::shared_ptr<FollowedIndex>> indexes);
  // Makes an index leave, and schedules its build. Its mark must require one. From here on the
  // index is kBuilding for the reason `why`.
  void Rebuild(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why);
  // Handles an index that cannot follow any more, for this reason: sets its state, and schedules
  // its repair if one is required.
  void Lost(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why);

  // Ends work in progress, and returns once it has ended. No work begins afterwards.
  void Stop();

 private:
  struct Job {
    std::shared_ptr<FollowedIndex> index;
    absl::Time due;
    absl::Duration wait;  // before the next attempt, if this one fails
    int failures = 0;     // before this attempt
    bool alone = false;   // build it separately, because a common build failed
  };
  enum class Then : uint8_t {
    kStale,
    kFailed,
    kAgain,  // after a wait
    kAlone,  // at once
  };
  struct Outcome {
    absl::Status status;
    Then then = Then::kFailed;  // how to continue after an error
  };

  // The circumstances of an attempt, at its beginning.
  struct Begun {
    IndexMark::Kind wanted;
    uint64_t rebuild_requests;
    uint64_t changes;  // PastLogChanges::Count
  };

  // A repair of the job's index must have begun.
  void Schedule(Job job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunJobs();
  // Takes the first of jobs_, and all others that are due and can be built with it, by name.
  // Returns false if memory runs out.
  bool TakeDue(std::vector<Job>* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(std::vector<Job>* jobs);
  void Conclude(const Job& job, const Outcome& outcome);
  // Does the work that the marks of the jobs' indexes require, without retries. The jobs must be in
  // the order of the indexes' names.
  std::vector<Outcome> Attempt(const std::vector<Job>& jobs);
  // Defines the index if necessary, and checks that it can follow the database as it is open.
  absl::Status Prepare(const std::shared_ptr<FollowedIndex>& index);
  std::vector<absl::Status> TryCatchUp(const Indexes& indexes);
  // The indexes must be of one column family.
  std::vector<Outcome> TryBuild(const Indexes& indexes);
  absl::Status BuildFiles(const Indexes& indexes, const LogRetention::Hold& hold,
                          const UnloggedWrites::Hold& unlogged);
  absl::Status OpenWriter(FollowedIndex* index, const OpenOptions& options);
  // Moves the database past the records of failed writes. Then a snapshot has all sequence numbers
  // that these may have taken, and the log continues in another file.
  absl::Status PassFailedWrites(rocksdb::ColumnFamilyHandle* column_family);
  // Brings indexes that have the same state near the end of the log.
  std::vector<absl::Status> CatchUpApart(const Indexes& indexes);
  std::vector<absl::Status> CatchUpAndJoin(const Indexes& indexes);
  // Begins an attempt to make an index follow. The index is not a member of the follower until it
  // joins.
  Begun Begin(const FollowedIndex& index);
  // Makes an index that has joined ready. `durable`: as for FollowedIndex::MarkFollowing. Errors:
  // Aborted if anything in `begun` has changed; otherwise the reason, if the index was lost after
  // it had joined. After an error it has left.
  absl::Status Finish(const std::shared_ptr<FollowedIndex>& index, const Begun& begun, bool built,
                      const absl::Status& durable = absl::OkStatus());

  rocksdb::DB* const db_;
  const std::shared_ptr<OlderLogs> older_logs_;  // shared by all indexes
  const IndexedDBOptions& options_;
  const IndexCatalog& catalog_;
  LogFollower* const follower_;
  LogRetention* const retention_;
  PastLogChanges* const changes_;
  const std::function<absl::Status(FollowedIndex*)> define_;
  const Admit admit_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Job> jobs_ ABSL_GUARDED_BY(mutex_);  // one per index, with capacity for all
  const std::vector<Job>* at_work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cairn
