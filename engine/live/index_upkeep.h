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
#include "index/machine/mutex.h"
#include "rocksdb/db.h"

namespace cairn {

// Builds indexes of a database that is written to, and lets them follow it, on a thread of its own.
// Those of one column family that are due together are built by one scan of its rows. Thread-safe.
//
// What is done to an index is what is wanted of it, as its mark says: to catch up and follow; to be
// built, by CreateIndex or RebuildIndex; or, where it is stale, to be built if OnStale says so. An
// attempt that fails is made again, after a wait that doubles, unless only other rows, another
// spec, other options of the database or somebody's help would do.
//
// While an index is built from a snapshot, the log goes on. It is kept from that snapshot on
// (LogRetention); what is in it is then caught up with, which is the faster the less there is,
// until so little is left that the others can wait for it in LogFollower::Join.
class IndexUpkeep {
 public:
  using Indexes = std::vector<std::shared_ptr<FollowedIndex>>;
  // Makes an index that has everything ready by calling the function, whose error it returns.
  using Admit = std::function<absl::Status(FollowedIndex*, absl::FunctionRef<absl::Status()>)>;

  // All must outlive this. `define` reads what an index is that is not defined yet.
  IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options, const IndexCatalog* catalog,
              LogFollower* follower, LogRetention* retention, PastLogChanges* changes,
              std::function<absl::Status(FollowedIndex*)> define, Admit admit);
  ~IndexUpkeep();

  // There may be so many indexes soon: what is called for these below throws nothing, except Start.
  void MakeRoomFor(size_t indexes);
  // Has indexes that the catalog has do what is wanted of them: catches them up together, so that
  // they follow before this returns, or has them built soon.
  void Start(const Indexes& indexes);
  // Has what is wanted of indexes done, soon. What they were until then stays pinned by those who
  // have it.
  void Work(absl::Span<const std::shared_ptr<FollowedIndex>> indexes);
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
    bool alone = false;   // not to be built with others, of which one could not be
  };
  enum class Then : uint8_t {
    kStale,
    kFailed,
    kAgain,  // after a wait
    kAlone,  // at once
  };
  struct Outcome {
    absl::Status status;
    Then then = Then::kFailed;  // what the index is after an error
  };

  // What an attempt is made for, as it was when the attempt began.
  struct Begun {
    IndexMark::Kind wanted;
    uint64_t rebuild_requests;
    uint64_t changes;  // PastLogChanges::Count
  };

  // One repair of the job's index has begun.
  void Schedule(Job job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunJobs();
  // Takes the first out of jobs_, and all that are due and may be built with it, in the order of
  // their names. False if there is no memory for that.
  bool TakeDue(std::vector<Job>* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(std::vector<Job>* jobs);
  void Conclude(const Job& job, const Outcome& outcome);
  // Does what is wanted of the indexes, once. They are in the order of their names.
  std::vector<Outcome> Attempt(const std::vector<Job>& jobs);
  // Defines the index if need be, and checks that the database, as it is open, lets it follow.
  absl::Status Prepare(const std::shared_ptr<FollowedIndex>& index);
  std::vector<absl::Status> TryCatchUp(const Indexes& indexes);
  // These are of one column family.
  std::vector<Outcome> TryBuild(const Indexes& indexes);
  absl::Status BuildFiles(const Indexes& indexes, const LogRetention::Hold& hold);
  // Gets the database past the records of writes that have failed, so that a snapshot has all
  // sequence numbers that they may have taken, and the log goes on in another file.
  absl::Status PassFailedWrites(rocksdb::ColumnFamilyHandle* column_family);
  // Brings indexes of one state near the end of the log.
  std::vector<absl::Status> CatchUpApart(const Indexes& indexes);
  std::vector<absl::Status> CatchUpAndJoin(const Indexes& indexes);
  // Begins an attempt to have an index follow: it is not a member of the follower until it joins.
  Begun Begin(const FollowedIndex& index);
  // Makes an index that has joined ready. Aborted if anything of `begun` has changed; otherwise, if
  // the index was lost after it had joined, why. After an error it has left.
  absl::Status Finish(const std::shared_ptr<FollowedIndex>& index, const Begun& begun, bool built);

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
  const std::vector<Job>* at_work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cairn
