#include "engine/live/index_upkeep.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/catch_up.h"
#include "engine/live/file_deletion_pause.h"

namespace cairn {
namespace {

// Sequence numbers that an index may be behind when it joins the others: some milliseconds' work.
constexpr SequenceNumber kJoinLag = 10000;
// Rounds of catching up to get there; a database that writes faster than that is made to wait.
constexpr int kRounds = 10;

// Between attempts that fail for want of space, say: from the one to the other, doubling.
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
constexpr absl::Duration kLongestWait = absl::Minutes(1);

// The share of a build that is done; scanning the rows takes about half of the time.
double ShareDone(const Progress& progress) {
  const double share =
      progress.total == 0
          ? 0
          : std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(progress.total));
  switch (progress.phase) {
    case Progress::Phase::kScan:
      return 0.5 * share;
    case Progress::Phase::kSort:
      return 0.5 + 0.25 * share;
    case Progress::Phase::kWrite:
      return 0.75 + 0.25 * share;
  }
  return 0;
}

// Whether the log cannot help, and a build can.
bool CallsForBuild(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsDataLoss(status) ||
         absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsOutOfRange(status);
}

// Whether another attempt may do better, with nothing changed.
bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsInternal(status) || absl::IsAborted(status);
}

}  // namespace

IndexUpkeep::IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options,
                         const IndexCatalog* catalog, LogFollower* follower)
    : db_(db), options_(options), catalog_(*catalog), follower_(follower) {
  thread_ = std::thread([this] { RunJobs(); });
}

IndexUpkeep::~IndexUpkeep() {
  Stop();
}

void IndexUpkeep::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    if (at_work_ != nullptr) at_work_->cancelled = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void IndexUpkeep::CatchUp(const std::shared_ptr<FollowedIndex>& index) {
  const std::lock_guard<std::mutex> lock(index->work_mutex);
  index->Set(IndexState::kCatchingUp);
  const absl::Status s = TryCatchUp(index);
  if (s.ok()) return;
  index->Set(CallsForBuild(s) || MayPass(s) ? IndexState::kStale : IndexState::kFailed, s);
  if (index->state() == IndexState::kStale) Repair(index);
}

void IndexUpkeep::Build(const std::shared_ptr<FollowedIndex>& index) {
  Enqueue({index, /*catch_up_first=*/false, absl::Now(), kFirstWait});
}

void IndexUpkeep::Repair(const std::shared_ptr<FollowedIndex>& index) {
  if (options_.on_stale == OnStale::kReport) return;
  Enqueue({index, /*catch_up_first=*/true, absl::Now(), kFirstWait});
}

void IndexUpkeep::Enqueue(Job job) {
  job.index->BeginRepair();
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void IndexUpkeep::RunJobs() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const auto next = std::min_element(jobs_.begin(), jobs_.end(),
                                       [](const Job& a, const Job& b) { return a.due < b.due; });
    if (next == jobs_.end()) {
      changed_.wait(lock);
      continue;
    }
    if (next->due > absl::Now()) {
      changed_.wait_until(lock, absl::ToChronoTime(next->due));
      continue;
    }
    const Job job = *next;
    jobs_.erase(next);
    at_work_ = job.index;
    lock.unlock();
    Run(job);
    job.index->EndRepair();
    lock.lock();
    at_work_ = nullptr;
  }
}

void IndexUpkeep::Run(const Job& job) {
  const std::shared_ptr<FollowedIndex>& index = job.index;
  absl::Status s;
  {
    const std::lock_guard<std::mutex> lock(index->work_mutex);
    if (index->cancelled) return;
    if (index->state() == IndexState::kReady) return;
    try {
      s = job.catch_up_first ? TryCatchUp(index) : TryBuild(index);
      if (job.catch_up_first && CallsForBuild(s)) s = TryBuild(index);
    } catch (const std::bad_alloc&) {
      s = absl::ResourceExhaustedError("out of memory while an index was built");
    } catch (const std::exception& e) {
      s = absl::InternalError(absl::StrFormat("while an index was built: %s", e.what()));
    }
  }
  if (s.ok() || index->cancelled) return;
  follower_->Leave(*index);  // where it had joined already
  if (MayPass(s)) {
    index->Set(IndexState::kStale, s);
    Enqueue(
        {index, job.catch_up_first, absl::Now() + job.wait, std::min(2 * job.wait, kLongestWait)});
    return;
  }
  index->Set(IndexState::kFailed, s);
}

absl::Status IndexUpkeep::TryCatchUp(const std::shared_ptr<FollowedIndex>& index) {
  uint64_t disruptions;
  {
    const std::lock_guard<std::mutex> lock(index->disruptions_mutex);
    disruptions = index->disruptions;
  }
  const FileDeletionPause pause(db_);
  if (index->writer() == nullptr) {
    if (absl::Status s = index->OpenWriter(db_, options_.open); !s.ok()) return s;
  }
  if (disruptions != 0) return absl::AbortedError("its rows have changed past the log");
  return CatchUpAndJoin(index, disruptions);
}

absl::Status IndexUpkeep::TryBuild(const std::shared_ptr<FollowedIndex>& index) {
  uint64_t disruptions;
  {
    const std::lock_guard<std::mutex> lock(index->disruptions_mutex);
    disruptions = index->disruptions;
  }
  index->progress = 0;
  index->Set(IndexState::kBuilding);
  const FileDeletionPause pause(db_);
  {
    const absl::StatusOr<std::unique_ptr<SnapshotSource>> source =
        SnapshotSource::FromDb(db_, index->column_family());
    if (!source.ok()) return source.status();
    BuildOptions build;
    build.threads = options_.build_threads;
    build.memory_budget = options_.build_memory_budget;
    build.cancelled = &index->cancelled;
    build.file_system = options_.open.file_system;
    build.on_progress = [&index](const Progress& p) { index->progress = ShareDone(p); };
    const BuildTarget target{index->spec(), index->directory()};
    if (absl::Status s =
            SecondaryIndex::BuildAll(**source, absl::MakeConstSpan(&target, 1), build).status();
        !s.ok()) {
      return s;
    }
  }
  index->Set(IndexState::kCatchingUp);
  OpenOptions open = options_.open;
  open.verify = VerifyLevel::kMetadata;  // just written
  if (absl::Status s = index->OpenWriter(db_, open); !s.ok()) return s;
  if (absl::Status s = CatchUpAndJoin(index, disruptions); !s.ok()) return s;
  ++index->builds;
  const std::lock_guard<std::mutex> lock(index->disruptions_mutex);
  if (index->disruptions != disruptions) return absl::OkStatus();  // it is stale again
  index->disruptions = 0;
  return catalog_.RemoveMark(index->name());
}

absl::Status IndexUpkeep::CatchUpAndJoin(const std::shared_ptr<FollowedIndex>& index,
                                         uint64_t disruptions) {
  const std::shared_ptr<IndexWriter> writer = index->writer();
  for (int round = 0; round < kRounds; ++round) {
    const SequenceNumber latest = db_->GetLatestSequenceNumber();
    const SequenceNumber sequence = writer->version()->sequence;
    if (sequence <= latest && latest - sequence <= kJoinLag) break;
    const absl::StatusOr<std::unique_ptr<SnapshotSource>> source =
        SnapshotSource::FromDb(db_, index->column_family());
    if (!source.ok()) return source.status();
    CatchUpOptions options;
    options.durable = false;
    options.cancelled = &index->cancelled;
    if (absl::Status s = cairn::CatchUp(**source, options, writer.get()).status(); !s.ok()) {
      return s;
    }
  }
  return follower_->Join(index, disruptions);
}

Periodically::Periodically(absl::Duration interval, std::function<void()> function) {
  if (interval <= absl::ZeroDuration()) return;
  thread_ = std::thread([this, interval, function = std::move(function)] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_) {
      ended_changed_.wait_for(lock, absl::ToChronoNanoseconds(interval));
      if (ended_) break;
      lock.unlock();
      function();
      lock.lock();
    }
  });
}

Periodically::~Periodically() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    ended_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn
