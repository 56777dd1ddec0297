#include "engine/live/index_upkeep.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cairn/build.h"
#include "cairn/catch_up.h"
#include "cairn/open_options.h"
#include "cairn/progress.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/log/wal_files.h"
#include "engine/serve/catch_up.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/options.h"
#include "rocksdb/transaction_log.h"

namespace cairn {
namespace {

// Sequence numbers that an index may be behind when it joins the others: some milliseconds' work.
constexpr SequenceNumber kJoinLag = 10000;
// Rounds of catching up to get there; a database that writes faster than that is made to wait.
constexpr int kRounds = 10;

// Between attempts that fail: from the one to the other, doubling.
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);
constexpr absl::Duration kLongestWait = absl::Minutes(1);
// Attempts that fail for a reason that may pass, before it is taken to be another: of the index's
// files, where it is caught up, so that it is built anew.
constexpr int kMostAttempts = 5;

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

// Whether only other rows, or another spec, would help.
bool IsOfRows(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

// Whether another attempt may do better, with nothing changed.
bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsInternal(status) || absl::IsCancelled(status) || absl::IsUnknown(status);
}

}  // namespace

IndexUpkeep::IndexUpkeep(rocksdb::DB* db, const IndexedDBOptions& options,
                         const IndexCatalog* catalog, LogFollower* follower,
                         LogRetention* retention, PastLogChanges* changes,
                         std::function<absl::Status(FollowedIndex*)> define, Admit admit)
    : db_(db),
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
    if (at_work_ != nullptr) at_work_->Cancel();
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void IndexUpkeep::MakeRoomFor(size_t indexes) {
  const MutexLock lock(&mutex_);
  jobs_.reserve(jobs_.size() + indexes);
}

void IndexUpkeep::Start(const std::shared_ptr<FollowedIndex>& index) {
  absl::Status s = index->is_defined() ? absl::OkStatus() : define_(index.get());
  if (!s.ok()) return MayPass(s) ? Lost(index, s) : index->Set(IndexState::kFailed, s);
  if (index->is_to_be_built()) return Work(index);
  {
    const MutexLock lock(index->work_mutex());
    s = TryCatchUp(index);
  }
  if (!s.ok()) Lost(index, s);
}

void IndexUpkeep::Work(const std::shared_ptr<FollowedIndex>& index) {
  index->BeginRepair();
  Schedule({index, absl::Now(), kFirstWait});
}

void IndexUpkeep::Lost(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
  if (IsOfRows(why)) return index->Set(IndexState::kFailed, why);
  if (!MayPass(why) && options_.on_stale == OnStale::kReport) {
    return index->Set(IndexState::kStale, why);
  }
  index->Set(IndexState::kStale, why, FollowedIndex::Repair::kBegins);
  Job job{index, absl::Now(), kFirstWait};
  if (MayPass(why)) job.due += index->NoteLoss(job.due, kFirstWait, kLongestWait);
  Schedule(std::move(job));
}

void IndexUpkeep::Schedule(Job job) {
  const MutexLock lock(&mutex_);
  const auto same = std::find_if(jobs_.begin(), jobs_.end(),
                                 [&](const Job& other) { return other.index == job.index; });
  if (same != jobs_.end()) {  // both are one
    same->due = std::min(same->due, job.due);
    job.index->EndRepair();
  } else {
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

void IndexUpkeep::RunJobs() {
  MutexLock lock(&mutex_);
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
    const Job job = std::move(*next);
    jobs_.erase(next);
    at_work_ = job.index;
    lock.Unlock();
    Run(job);
    lock.Lock();
    at_work_ = nullptr;
  }
}

void IndexUpkeep::Run(const Job& job) {
  const std::shared_ptr<FollowedIndex>& index = job.index;
  absl::Status s;
  Then then = Then::kFailed;
  {
    const MutexLock lock(index->work_mutex());
    if (index->cancelled() || index->state() == IndexState::kReady) return index->EndRepair();
    try {
      s = Attempt(index, job.failures, &then);
    } catch (...) {
      s = StatusOfException("building an index");
      then = Then::kAgain;
    }
  }
  if (s.ok() || index->cancelled()) return index->EndRepair();
  follower_->Leave(*index);  // where it had joined already
  if (then == Then::kAgain) {
    index->Set(IndexState::kStale, s);
    return Schedule(
        {index, absl::Now() + job.wait, std::min(2 * job.wait, kLongestWait), job.failures + 1});
  }
  index->Set(then == Then::kStale ? IndexState::kStale : IndexState::kFailed, s);
  index->EndRepair();
}

absl::Status IndexUpkeep::Attempt(const std::shared_ptr<FollowedIndex>& index, int failures,
                                  Then* then) {
  if (!index->is_defined()) {
    if (absl::Status s = define_(index.get()); !s.ok()) {
      *then = MayPass(s) ? Then::kAgain : Then::kFailed;
      return s;
    }
  }
  if (!index->is_to_be_built()) {
    absl::Status s = TryCatchUp(index);
    const bool may_pass = MayPass(s);
    *then = IsOfRows(s) ? Then::kFailed : may_pass ? Then::kAgain : Then::kStale;
    if (s.ok() || IsOfRows(s) || options_.on_stale == OnStale::kReport) return s;
    if (may_pass && failures < kMostAttempts) return s;
  }
  bool fits = false;
  absl::Status s = TryBuild(index, &fits);
  // A file that is not found may have been one of the log.
  const bool again = fits || MayPass(s) || (absl::IsNotFound(s) && failures < kMostAttempts);
  *then = again ? Then::kAgain : Then::kFailed;
  return s;
}

absl::Status IndexUpkeep::TryCatchUp(const std::shared_ptr<FollowedIndex>& index) {
  const uint64_t changes = changes_->Count(index->spec().column_family);
  const LogRetention::Hold hold(retention_);
  if (!index->holds_directory()) {  // else others may have written there since it was opened
    RETURN_IF_ERROR(index->OpenWriter(db_, options_.open));
  }
  if (index->wanted() != IndexMark::Kind::kNone) {
    return absl::FailedPreconditionError(index->why_marked());
  }
  index->Set(IndexState::kCatchingUp);
  RETURN_IF_ERROR(CatchUpAndJoin(index));
  return Finish(index, IndexMark::Kind::kNone, changes, /*built=*/false);
}

absl::Status IndexUpkeep::TryBuild(const std::shared_ptr<FollowedIndex>& index, bool* fits) {
  const uint64_t changes = changes_->Count(index->spec().column_family);
  const IndexMark::Kind wanted = index->wanted();
  index->set_progress(0);
  index->Set(IndexState::kBuilding);
  const LogRetention::Hold hold(retention_);
  RETURN_IF_ERROR(BuildFiles(index));
  index->Set(IndexState::kCatchingUp);
  OpenOptions open = options_.open;
  open.verify = VerifyLevel::kMetadata;  // just written
  absl::Status s = index->OpenWriter(db_, open);
  if (s.ok()) s = CatchUpAndJoin(index);
  if (s.ok()) s = Finish(index, wanted, changes, /*built=*/true);
  *fits = !IsOfRows(s);
  return s;
}

absl::Status IndexUpkeep::BuildFiles(const std::shared_ptr<FollowedIndex>& index) {
  // What an earlier build left is of no use, even where it is whole: nobody knows what came since.
  if (index->writer() == nullptr && index->is_to_be_built()) {
    RETURN_IF_ERROR(catalog_.RemoveFiles(index->name()));
  }
  RETURN_IF_ERROR(PassFailedWrites(*index));
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   SnapshotSource::FromDb(db_, index->column_family()));
  BuildOptions build;
  build.threads = options_.build_threads;
  build.memory_budget = options_.build_memory_budget;
  build.store_leaves = options_.build_store_leaves;
  build.cancelled = &index->cancelled();
  build.file_system = options_.open.file_system;
  build.on_progress = [&index](const Progress& p) { index->set_progress(ShareDone(p)); };
  const BuildTarget target{index->spec(), index->directory()};
  index->LetGoOfDirectory();  // as the build takes it
  return SecondaryIndex::BuildAll(*source, absl::MakeConstSpan(&target, 1), build).status();
}

absl::Status IndexUpkeep::PassFailedWrites(const FollowedIndex& index) {
  const uint64_t failed = changes_->failed_log();
  if (failed == 0) return absl::OkStatus();
  // A write that succeeds publishes all numbers that were given before it.
  RETURN_IF_ERROR(SyncLog(db_, /*read_only=*/false));
  for (rocksdb::ColumnFamilyHandle* family : {static_cast<rocksdb::ColumnFamilyHandle*>(nullptr),
                                              index.column_family(), db_->DefaultColumnFamily()}) {
    if (family != nullptr) {
      RETURN_IF_ERROR(
          FromRocksDb(db_->Flush(rocksdb::FlushOptions(), family), "cannot flush the database"));
    }
    std::unique_ptr<rocksdb::LogFile> current;
    RETURN_IF_ERROR(FromRocksDb(db_->GetCurrentWalFile(&current), "cannot find the log's file"));
    if (current->LogNumber() > failed) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrFormat(
      "log file %d of database '%s' may have the record of a write that failed: the index is built "
      "once a flush begins another file",
      failed, db_->GetName()));
}

absl::Status IndexUpkeep::CatchUpAndJoin(const std::shared_ptr<FollowedIndex>& index) {
  const std::shared_ptr<IndexWriter> writer = index->writer();
  for (int round = 0; round < kRounds; ++round) {
    const SequenceNumber latest = db_->GetLatestSequenceNumber();
    const SequenceNumber sequence = writer->version()->sequence;
    if (sequence <= latest && latest - sequence <= kJoinLag) break;
    ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                     SnapshotSource::FromDb(db_, index->column_family()));
    CatchUpOptions options;
    options.durable = false;
    options.cancelled = &index->cancelled();
    RETURN_IF_ERROR(cairn::CatchUp(*source, options, writer.get(), follower_->live_log()).status());
  }
  return follower_->Join(index);
}

absl::Status IndexUpkeep::Finish(const std::shared_ptr<FollowedIndex>& index,
                                 IndexMark::Kind wanted, uint64_t changes, bool built) {
  // The mark goes before anybody is told that the index is ready.
  absl::Status s = admit_(index.get(), [&]() -> absl::Status {
    RETURN_IF_ERROR(index->MarkFollowing(
        wanted, [&] { return changes_->AnySince(index->spec().column_family, changes); }));
    index->SetReady(built);
    return absl::OkStatus();
  });
  if (!s.ok()) follower_->Leave(*index);
  return s;
}

}  // namespace cairn
