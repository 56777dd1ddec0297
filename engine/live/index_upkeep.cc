#include "engine/live/index_upkeep.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/live/can_follow.h"
#include "engine/live/event_log.h"
#include "engine/util/status.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/options.h"

namespace cairn {
namespace {

// The maximum lag, in sequence numbers, of an index that joins the others: a few milliseconds of
// work.
constexpr SequenceNumber kJoinLag = 10000;
// Rounds of catching up until then. If the database writes faster, its writers must wait.
constexpr int kRounds = 10;

// The memory for batches that are written without a log while an index is built or catches up. If
// they take more, it starts again later.
constexpr uint64_t kUnloggedMemory = uint64_t{1} << 30;

// Waits between failed attempts: the first one and the longest one, doubling.
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
constexpr absl::Duration kLongestWait = absl::Minutes(1);
// Attempts that may fail for reasons that may pass. After that, if the index is being caught up,
// the reason is assumed to be in its files, and it is rebuilt.
constexpr int kMaxAttempts = 5;

// Returns whether only other rows or another spec can help.
bool IsOfRows(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

// Returns whether another attempt may succeed although nothing has changed.
bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsInternal(status) || absl::IsCancelled(status) || absl::IsUnknown(status) ||
         absl::IsDeadlineExceeded(status);
}

// Returns the state of an index after a failed attempt that is followed by another one. If a build
// was requested during the attempt, the index is waiting for that build.
IndexState StateAfter(const absl::Status& status, const FollowedIndex& index) {
  return absl::IsAborted(status) && index.is_to_be_built() ? IndexState::kBuilding
                                                           : IndexState::kStale;
}

// Returns where the log continues for an index.
std::pair<SequenceNumber, LogPosition> StateOf(const FollowedIndex& index) {
  const std::shared_ptr<IndexWriter> writer = index.writer();
  const IndexWriter::Update update(writer.get());
  return {update.version().sequence, update.anchor().log};
}

// Locks the work on indexes, which are in the order of their names.
class WorkLocks {
 public:
  // The analysis does not follow locks in a vector.
  explicit WorkLocks(const IndexUpkeep::Indexes& indexes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& index : indexes) {
      locks_.push_back(std::make_unique<MutexLock>(index->work_mutex()));
    }
  }

 private:
  std::vector<std::unique_ptr<MutexLock>> locks_;
};

}  // namespace

IndexUpkeep::IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options,
                         const IndexCatalog* catalog, LogFollower* follower,
                         LogRetention* retention, PastLogChanges* changes,
                         std::function<absl::Status(FollowedIndex*)> define, Admit admit)
    : db_(db),
      older_logs_(std::make_shared<OlderLogs>(db)),
      options_(options),
      catalog_(*catalog),
      follower_(follower),
      retention_(retention),
      changes_(changes),
      define_(std::move(define)),
      admit_(std::move(admit)) {
  thread_ = std::thread([this] { RunJobs(); });
}

IndexUpkeep::~IndexUpkeep() {
  Stop();
}

void IndexUpkeep::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopped_ = true;
    if (at_work_ != nullptr) {
      for (const Job& job : *at_work_) job.index->Cancel();
    }
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void IndexUpkeep::MakeRoomFor(size_t indexes) {
  const MutexLock lock(&mutex_);
  jobs_.reserve(jobs_.size() + indexes);
}

void IndexUpkeep::Start(const Indexes& indexes) {
  Indexes follow, build;
  for (const auto& index : indexes) {
    absl::Status s = Prepare(index);
    if (!s.ok()) {
      MayPass(s) ? Lost(index, s) : index->Set(IndexState::kFailed, s);
    } else {
      (index->is_to_be_built() ? build : follow).push_back(index);
    }
  }
  Work(build);
  if (follow.empty()) return;
  std::vector<absl::Status> status;
  {
    const WorkLocks locks(follow);
    status = TryCatchUp(follow);
  }
  for (size_t i = 0; i < follow.size(); ++i) {
    if (!status[i].ok()) Lost(follow[i], status[i]);
  }
}

void IndexUpkeep::Work(absl::Span<const std::shared_ptr<FollowedIndex>> indexes) {
  const MutexLock lock(&mutex_);
  for (const auto& index : indexes) {
    index->BeginRepair();
    Schedule({index, absl::Now(), kFirstWait});
  }
}

void IndexUpkeep::Rebuild(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
  // If an earlier attempt makes the index ready in between, it stays with the follower, and the
  // next attempt finds that it must be built.
  follower_->Leave(*index);
  index->Set(IndexState::kBuilding, why, FollowedIndex::Repair::kBegins);
  const MutexLock lock(&mutex_);
  Schedule({index, absl::Now(), kFirstWait});
}

void IndexUpkeep::Lost(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
  if (IsOfRows(why)) return index->Set(IndexState::kFailed, ShownError(db_, why));
  if (!MayPass(why) && options_.on_stale == OnStale::kKeepStale) {
    return index->Set(IndexState::kStale, why);
  }
  index->Set(IndexState::kStale, why, FollowedIndex::Repair::kBegins);
  Job job{index, absl::Now(), kFirstWait};
  if (MayPass(why)) job.due += index->NoteLoss(job.due, kFirstWait, kLongestWait);
  const MutexLock lock(&mutex_);
  Schedule(std::move(job));
}

void IndexUpkeep::Schedule(Job job) {
  const auto same = std::find_if(jobs_.begin(), jobs_.end(),
                                 [&](const Job& other) { return other.index == job.index; });
  if (same != jobs_.end()) {  // merge both
    same->due = std::min(same->due, job.due);
    job.index->EndRepair();
  } else {
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

void IndexUpkeep::RunJobs() {
  MutexLock lock(&mutex_);
  std::vector<Job> due;
  bool awaited = false;
  while (!stopped_) {
    const auto next = std::min_element(jobs_.begin(), jobs_.end(),
                                       [](const Job& a, const Job& b) { return a.due < b.due; });
    if (next == jobs_.end()) {
      changed_.Wait(&lock);
      continue;
    }
    if (next->due > absl::Now()) {
      changed_.WaitUntil(&lock, absl::ToChronoTime(next->due));
      continue;
    }
    if (!awaited) {
      // The call of the follower that has lost this index may lose others of its column family. One
      // scan then builds them together.
      lock.Unlock();
      follower_->AwaitCall();
      lock.Lock();
      awaited = true;
      continue;
    }
    awaited = false;
    std::iter_swap(next, jobs_.begin());
    if (!TakeDue(&due)) {
      changed_.WaitUntil(&lock, absl::ToChronoTime(absl::Now() + kFirstWait));
      continue;
    }
    at_work_ = &due;
    lock.Unlock();
    Run(&due);
    lock.Lock();
    at_work_ = nullptr;
    due.clear();
  }
}

bool IndexUpkeep::TakeDue(std::vector<Job>* due) {
  const absl::Status room = Guarded("building indexes", [&] {
    mutex_.AssertHeld();
    due->reserve(jobs_.size());
    return absl::OkStatus();
  });
  if (!room.ok()) return false;
  const absl::Time now = absl::Now();
  due->push_back(std::move(jobs_[0]));
  const Job& first = due->front();
  const auto goes_along = [&](const Job& job) {
    return !first.alone && !job.alone && job.due <= now && first.index->is_defined() &&
           job.index->is_defined() && job.index->column_family() != nullptr &&
           job.index->column_family_id() == first.index->column_family_id();
  };
  size_t kept = 0;
  for (size_t i = 1; i < jobs_.size(); ++i) {
    if (goes_along(jobs_[i])) {
      due->push_back(std::move(jobs_[i]));
    } else {
      std::swap(jobs_[kept++], jobs_[i]);
    }
  }
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(kept), jobs_.end());
  // The work is locked in this order.
  std::sort(due->begin(), due->end(),
            [](const Job& a, const Job& b) { return a.index->name() < b.index->name(); });
  return true;
}

void IndexUpkeep::Run(std::vector<Job>* jobs) {
  std::vector<Outcome> outcomes;
  const absl::Status attempted = Guarded("building indexes", [&] {
    Indexes indexes;
    for (const Job& job : *jobs) indexes.push_back(job.index);
    const WorkLocks locks(indexes);
    outcomes = Attempt(*jobs);
    return absl::OkStatus();
  });
  for (size_t i = 0; i < jobs->size(); ++i) {
    Conclude((*jobs)[i], attempted.ok() ? outcomes[i] : Outcome{attempted, Then::kAgain});
  }
}

void IndexUpkeep::Conclude(const Job& job, const Outcome& outcome) {
  const std::shared_ptr<FollowedIndex>& index = job.index;
  if (outcome.status.ok() || index->cancelled() || index->state() == IndexState::kReady) {
    return index->EndRepair();
  }
  follower_->Leave(*index);  // if it had already joined
  if (outcome.then == Then::kStale || outcome.then == Then::kFailed) {
    index->Set(
        outcome.then == Then::kStale ? StateAfter(outcome.status, *index) : IndexState::kFailed,
        outcome.status);
    return index->EndRepair();
  }
  index->Set(StateAfter(outcome.status, *index), outcome.status);
  Job next{index, absl::Now(), job.wait, job.failures, /*alone=*/true};
  if (outcome.then == Then::kAgain) {
    next.due += job.wait;
    next.wait = std::min(2 * job.wait, kLongestWait);
    next.failures = job.failures + 1;
    next.alone = job.alone;
  }
  const MutexLock lock(&mutex_);
  Schedule(std::move(next));
}

std::vector<IndexUpkeep::Outcome> IndexUpkeep::Attempt(const std::vector<Job>& jobs) {
  std::vector<Outcome> outcomes(jobs.size());
  Indexes catch_up, build;
  std::vector<size_t> to_catch_up, to_build;  // their positions among the jobs
  const auto add = [&](size_t i, Indexes* indexes, std::vector<size_t>* places) {
    indexes->push_back(jobs[i].index);
    places->push_back(i);
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::shared_ptr<FollowedIndex>& index = jobs[i].index;
    if (index->cancelled() || index->state() == IndexState::kReady) continue;
    if (absl::Status s = Prepare(index); !s.ok()) {
      outcomes[i] = {s, MayPass(s) ? Then::kAgain : Then::kFailed};
    } else if (index->is_to_be_built()) {
      add(i, &build, &to_build);
    } else {
      add(i, &catch_up, &to_catch_up);
    }
  }
  const std::vector<absl::Status> caught_up = TryCatchUp(catch_up);
  for (size_t k = 0; k < caught_up.size(); ++k) {
    const size_t i = to_catch_up[k];
    const absl::Status& s = caught_up[k];
    const bool may_pass = MayPass(s);
    outcomes[i] = {ShownError(db_, s), IsOfRows(s) ? Then::kFailed
                                       : may_pass  ? Then::kAgain
                                                   : Then::kStale};
    if (s.ok() || IsOfRows(s) || options_.on_stale == OnStale::kKeepStale) continue;
    if (may_pass && jobs[i].failures < kMaxAttempts) continue;
    jobs[i].index->Set(StateAfter(s, *jobs[i].index), s);  // the reason of the build
    add(i, &build, &to_build);
  }
  const std::vector<Outcome> built = TryBuild(build);
  for (size_t k = 0; k < built.size(); ++k) {
    const size_t i = to_build[k];
    outcomes[i] = built[k];
    // A missing file may have been one of the log.
    if (absl::IsNotFound(built[k].status) && jobs[i].failures < kMaxAttempts) {
      outcomes[i].then = Then::kAgain;
    }
  }
  return outcomes;
}

absl::Status IndexUpkeep::Prepare(const std::shared_ptr<FollowedIndex>& index) {
  if (!index->is_defined()) RETURN_IF_ERROR(define_(index.get()));
  rocksdb::ColumnFamilyHandle* const column_family = index->column_family();
  if (column_family == nullptr) {
    return absl::FailedPreconditionError("there is no handle of its column family");
  }
  // With a damaged MANIFEST it could not join the others. A build would be in vain.
  const absl::Status manifest = follower_->FamilyId(index->spec().column_family).status();
  if (absl::IsDataLoss(manifest)) return manifest;
  absl::Status can_follow = CheckCanFollow(db_, column_family, index->spec());
  if (can_follow.ok()) return can_follow;
  // While the database is open like this, rows may disappear, and no later opening can notice that.
  if (absl::Status s = CheckKeepsRows(db_, column_family, index->spec()); !s.ok()) {
    index->Distrust(std::string(s.message()));
  }
  return can_follow;
}

std::vector<absl::Status> IndexUpkeep::TryCatchUp(const Indexes& indexes) {
  std::vector<absl::Status> status(indexes.size());
  if (indexes.empty()) return status;
  std::vector<Begun> begun;
  for (const auto& index : indexes) begun.push_back(Begin(*index));
  const LogRetention::Hold hold(retention_, LogRetention::kNoBound);
  const UnloggedWrites::Hold unlogged(&follower_->unlogged(), kUnloggedMemory);
  Indexes open;
  std::vector<size_t> places;
  for (size_t i = 0; i < indexes.size(); ++i) {
    const auto& index = indexes[i];
    // If it does not hold its directory, others may have written there since it was opened.
    if (!index->holds_directory()) status[i] = OpenWriter(index.get(), options_.open);
    if (status[i].ok() && begun[i].wanted != IndexMark::Kind::kNone) {
      status[i] = absl::FailedPreconditionError(index->why_marked());
    }
    if (!status[i].ok()) continue;
    index->Set(IndexState::kCatchingUp);
    open.push_back(index);
    places.push_back(i);
  }
  const std::vector<absl::Status> joined = CatchUpAndJoin(open);
  for (size_t k = 0; k < open.size(); ++k) {
    const size_t i = places[k];
    status[i] = joined[k].ok() ? Finish(open[k], begun[i], /*built=*/false) : joined[k];
  }
  return status;
}

absl::Status IndexUpkeep::OpenWriter(FollowedIndex* index, const OpenOptions& options) {
  return index->OpenWriter(db_, older_logs_, &follower_->unlogged(), options);
}

std::vector<IndexUpkeep::Outcome> IndexUpkeep::TryBuild(const Indexes& indexes) {
  std::vector<Outcome> outcomes(indexes.size());
  if (indexes.empty()) return outcomes;
  std::vector<Begun> begun;
  for (const auto& index : indexes) {
    begun.push_back(Begin(*index));
    index->set_progress(0);
    index->Set(IndexState::kBuilding, index->why());
  }
  const LogRetention::Hold hold(retention_, options_.build_log_megabytes << 20);
  const UnloggedWrites::Hold unlogged(&follower_->unlogged(), kUnloggedMemory);
  absl::Status built = BuildFiles(indexes, hold, unlogged);
  if (!built.ok()) {
    // With several indexes it is unknown whose rows or spec caused the error.
    const Then then = IsOfRows(built) && indexes.size() > 1 ? Then::kAlone
                      : MayPass(built)                      ? Then::kAgain
                                                            : Then::kFailed;
    if (absl::IsCancelled(built)) {
      built =
          absl::UnavailableError("its build ended because another index of the build was dropped");
    }
    for (Outcome& outcome : outcomes) outcome = {ShownError(db_, built), then};
  }
  OpenOptions open = options_.open;
  open.verify = VerifyLevel::kMetadata;  // the files were just written
  Indexes opened;
  std::vector<size_t> places;
  std::vector<absl::Status> durable(indexes.size());
  for (size_t i = 0; i < indexes.size() && built.ok(); ++i) {
    indexes[i]->Set(IndexState::kCatchingUp, indexes[i]->why());
    outcomes[i] = {OpenWriter(indexes[i].get(), open), Then::kAgain};
    if (!outcomes[i].status.ok()) continue;
    // The files of a build can be ahead of those of the database, too. Its anchor considers only
    // the index's own column family.
    durable[i] = follower_->unlogged().MakeDurable(db_, indexes[i]->writer()->version()->sequence,
                                                   /*anchor=*/nullptr);
    // Otherwise the first change waits for it.
    if (!indexes[i]->cancelled()) indexes[i]->writer()->PrepareUpdates().IgnoreError();
    opened.push_back(indexes[i]);
    places.push_back(i);
  }
  const std::vector<absl::Status> joined = CatchUpAndJoin(opened);
  for (size_t k = 0; k < opened.size(); ++k) {
    const size_t i = places[k];
    absl::Status s = joined[k];
    if (s.ok()) s = Finish(opened[k], begun[i], /*built=*/true, durable[i]);
    // The build has succeeded, so the rows and the spec are valid. The error may not occur again.
    outcomes[i] = {ShownError(db_, s), IsOfRows(s) ? Then::kFailed : Then::kAgain};
  }
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (!outcomes[i].status.ok() && !indexes[i]->cancelled()) indexes[i]->NoteFailedBuild();
  }
  for (size_t i = 0; i < outcomes.size() && unlogged.exceeded(); ++i) {
    if (outcomes[i].status.ok() || IsOfRows(outcomes[i].status)) continue;
    outcomes[i] = {absl::ResourceExhaustedError(absl::StrFormat(
                       "more than %d MB were written with disableWAL while index %s was built",
                       kUnloggedMemory >> 20, Quoted(indexes[i]->name()))),
                   Then::kAgain};
  }
  if (hold.exceeded()) {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].status.ok() || IsOfRows(outcomes[i].status)) continue;
      outcomes[i] = {absl::ResourceExhaustedError(absl::StrFormat(
                         "more than %d MB of log were written while index %s was built: increase "
                         "IndexedDBOptions::build_log_megabytes and reopen the database",
                         options_.build_log_megabytes, Quoted(indexes[i]->name()))),
                     Then::kFailed};
    }
  }
  return outcomes;
}

std::vector<absl::Status> IndexUpkeep::CatchUpApart(const Indexes& indexes) {
  // Other indexes do not wait while these have much to catch up.
  std::vector<absl::Status> status(indexes.size());
  LogFollower apart(
      db_, follower_->live_log(),
      [&](const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
        status[static_cast<size_t>(std::find(indexes.begin(), indexes.end(), index) -
                                   indexes.begin())] = why;
      },
      LogFollower::Publishing::kOnce, follower_);
  status = apart.Join(indexes, LogFollower::Ingested::kUnchecked);
  for (int round = 1; round < kRounds && apart.Behind() > kJoinLag; ++round) {
    apart.Follow().IgnoreError();  // each index's result is in its state
  }
  apart.Close();
  return status;
}

std::vector<absl::Status> IndexUpkeep::CatchUpAndJoin(const Indexes& indexes) {
  std::vector<absl::Status> status(indexes.size());
  // Indexes that have the same state catch up together, and read the log once. Indexes with another
  // state catch up separately: their sequence numbers may be of an earlier session of the database.
  // Since its recovery, the log may have other records with these numbers.
  std::vector<bool> done(indexes.size());
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (done[i]) continue;
    Indexes same;
    std::vector<size_t> same_places;
    for (size_t k = i; k < indexes.size(); ++k) {
      if (done[k] || StateOf(*indexes[k]) != StateOf(*indexes[i])) continue;
      done[k] = true;
      same.push_back(indexes[k]);
      same_places.push_back(k);
    }
    const std::vector<absl::Status> caught_up = CatchUpApart(same);
    for (size_t k = 0; k < same.size(); ++k) status[same_places[k]] = caught_up[k];
  }
  Indexes near;
  std::vector<size_t> places;
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (indexes[i]->cancelled()) status[i] = absl::CancelledError("catching up was cancelled");
    if (!status[i].ok()) continue;
    near.push_back(indexes[i]);
    places.push_back(i);
  }
  const std::vector<absl::Status> joined = follower_->Join(near);
  for (size_t k = 0; k < near.size(); ++k) status[places[k]] = joined[k];
  return status;
}

IndexUpkeep::Begun IndexUpkeep::Begin(const FollowedIndex& index) {
  follower_->Leave(index);
  // An index that is built after a failed write does not leave because of it.
  follower_->HeedDoubt();
  const uint64_t requests = index.rebuild_requests();  // first: a request also changes `wanted`
  return {index.wanted(), requests, changes_->Count(index.spec().column_family)};
}

absl::Status IndexUpkeep::Finish(const std::shared_ptr<FollowedIndex>& index, const Begun& begun,
                                 bool built, const absl::Status& durable) {
  // The mark is removed before any caller sees that the index is ready.
  absl::Status s = admit_(index.get(), [&]() -> absl::Status {
    RETURN_IF_ERROR(index->MarkFollowing(
        begun.wanted,
        [&] {
          return index->rebuild_requests() != begun.rebuild_requests ||
                 changes_->AnySince(index->spec().column_family, begun.changes);
        },
        durable));
    return index->SetReady(built);
  });
  if (!s.ok()) follower_->Leave(*index);
  return s;
}

}  // namespace cairn
