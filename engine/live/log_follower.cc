#include "engine/live/log_follower.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/log/update_log.h"
#include "engine/serve/catch_up.h"
#include "engine/serve/existing_rows.h"
#include "engine/source/db_source.h"
#include "engine/source/manifest_families.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

bool HasLookUp(const SettledChanges& changes) {
  return std::any_of(changes.rows().begin(), changes.rows().end(),
                     [](const RowChange& row) { return row.kind == RowChangeKind::kLookUp; });
}

// Sequence numbers that the indexes may always be behind: some milliseconds' work.
constexpr SequenceNumber kLeastBacklog = 10000;
// How fast the speed of following is taken to be what it was last.
constexpr double kNewestShare = 0.25;
// How long a writer waits for somebody to follow before it does.
constexpr absl::Duration kPatience = absl::Milliseconds(20);

// How long to wait for the end of an ingestion that may have taken a missing number.
constexpr std::chrono::milliseconds kIngestionPatience(1000);

// Of followed_, where there is nothing to follow.
constexpr SequenceNumber kNothingFollows = std::numeric_limits<SequenceNumber>::max();

// How often versions of one sequence number are looked for while more are published.
constexpr int kTries = 16;

absl::Status Doubted() {
  return absl::FailedPreconditionError(
      "a write to the database failed, and its record may be in the log all the same");
}

// Gives up an index whose column family was dropped past the object; returns why.
absl::Status FamilyIsGone(FollowedIndex* index) {
  absl::Status why = absl::FailedPreconditionError(
      absl::StrFormat("its column family %s was dropped past the IndexedDB; attach again with the "
                      "handle of the new one",
                      Quoted(index->spec().column_family)));
  index->Distrust(std::string(why.message()));
  index->Cancel();
  index->GiveUp(why);
  return why;
}

absl::Status Closed() {
  return absl::FailedPreconditionError("the database has been closed");
}

}  // namespace

struct LogFollower::Updates {
  std::vector<std::unique_ptr<IndexWriter::Update>> of_member;  // null where it has failed
  std::vector<absl::Status> status;                             // why
};

LogFollower::LogFollower(
    rocksdb::DB* db,
    std::function<void(const std::shared_ptr<FollowedIndex>&, const absl::Status&)> on_lost)
    : db_(db),
      live_(LiveLog::Of(db)),
      on_lost_(std::move(on_lost)),
      followed_(kNothingFollows),
      current_at_(absl::Now()) {}

LogFollower::~LogFollower() = default;

absl::StatusOr<SequenceNumber> LogFollower::Latest() const {
  const std::shared_lock<std::shared_mutex> use(use_mutex_);
  if (closed_) return Closed();
  return db_->GetLatestSequenceNumber();
}

void LogFollower::HeedDoubt() {
  if (!doubted_) return;
  const MutexLock lock(&mutex_);
  if (doubted_.exchange(false)) FailAll(Doubted());
}

absl::Status LogFollower::Follow() {
  HeedDoubt();
  ASSIGN_OR_RETURN(const SequenceNumber latest, Latest());
  absl::Status s = Follow(latest);
  const MutexLock lock(&progress_mutex_);
  if (followed_ >= latest) current_at_ = absl::Now();
  return s;
}

absl::Status LogFollower::Follow(SequenceNumber sequence) {
  {
    MutexLock lock(&progress_mutex_);
    while (followed_ < sequence && following_) progressed_.Wait(&lock);
    if (followed_ >= sequence) return closed_ ? Closed() : absl::OkStatus();
    following_ = true;
  }
  const absl::Cleanup done = [&] {
    const MutexLock lock(&progress_mutex_);
    following_ = false;
    progressed_.NotifyAll();
  };
  const MutexLock lock(&mutex_);
  if (closed_) return Closed();
  if (tail_ == nullptr || tail_->sequence() >= sequence) return absl::OkStatus();
  // Each index says what became of it.
  FollowTo(db_->GetLatestSequenceNumber(), nullptr).IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SecondaryIndex>> LogFollower::Current(const FollowedIndex& index) {
  HeedDoubt();
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> ready = index.Ready();
  if (!ready.ok()) return ready;
  ASSIGN_OR_RETURN(const SequenceNumber latest, Latest());
  while (ready.ok() && (*ready)->sequence() < latest) {
    RETURN_IF_ERROR(Follow(latest));
    ready = index.Ready();
  }
  return ready;
}

absl::StatusOr<std::vector<std::shared_ptr<const IndexVersion>>> LogFollower::CurrentTogether(
    absl::Span<const std::shared_ptr<FollowedIndex>> indexes) {
  for (const auto& index : indexes) {
    RETURN_IF_ERROR(Current(*index).status());
  }
  std::vector<std::shared_ptr<const IndexVersion>> versions(indexes.size());
  const auto take = [&] {
    for (size_t i = 0; i < indexes.size(); ++i) versions[i] = indexes[i]->writer()->version();
    return std::all_of(versions.begin(), versions.end(), [&](const auto& version) {
      return version->sequence == versions[0]->sequence;
    });
  };
  // All are published within some microseconds, so that a try or two nearly always do. While the
  // log is not read, nothing is.
  for (int tries = 0; tries < kTries; ++tries) {
    if (take()) return versions;
  }
  const MutexLock lock(&mutex_);
  for (const auto& index : indexes) RETURN_IF_ERROR(index->Ready().status());
  if (take()) return versions;
  return absl::FailedPreconditionError("the indexes are not at one sequence number");
}

bool LogFollower::LimitBacklog(absl::Duration longest, bool may_wait) {
  const SequenceNumber followed = followed_.load(std::memory_order_relaxed);
  if (followed == kNothingFollows) return true;
  const SequenceNumber latest = db_->GetLatestSequenceNumber();
  if (latest <= followed + kLeastBacklog) return true;
  const double per_second = per_second_.load(std::memory_order_relaxed);
  const auto most = std::max<SequenceNumber>(
      kLeastBacklog, static_cast<SequenceNumber>(per_second * absl::ToDoubleSeconds(longest)));
  if (latest <= followed + most) return true;
  if (!may_wait) return false;
  const SequenceNumber wanted = latest - most;
  while (true) {
    {
      // Others follow beside this thread, and more at a time, so that it is the faster to wait.
      MutexLock lock(&progress_mutex_);
      const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kPatience);
      while (followed_ < wanted && progressed_.WaitUntil(&lock, end)) {
      }
      if (followed_ >= wanted) return true;
      if (following_) continue;
    }
    if (!Follow(wanted).ok()) return true;
  }
}

absl::Status LogFollower::FollowTo(SequenceNumber until,
                                   std::shared_ptr<rocksdb::ManagedSnapshot> snapshot) {
  while (tail_ != nullptr && tail_->sequence() < until) {
    const SequenceNumber before = tail_->sequence();
    const absl::Time begin = absl::Now();
    const uint64_t ingested = CountIngested(/*wait=*/false);
    const absl::Status status = Guarded("following the database's log", [&]() -> absl::Status {
      mutex_.AssertHeld();
      RETURN_IF_ERROR(PassIngested());
      if (tail_ == nullptr || tail_->sequence() >= until) return absl::OkStatus();
      return Step(std::min(until, NextIngested(tail_->sequence()) - 1), &snapshot);
    });
    // The number that is missing may be an ingested file's that has not been noted yet.
    if (absl::IsFailedPrecondition(status) && CountIngested(/*wait=*/true) > ingested) continue;
    if (!status.ok()) {
      FailAll(status);
      return status;
    }
    // Not of little, of which most time is not for the rows.
    if (tail_ == nullptr || tail_->sequence() < before + kLeastBacklog / 2) continue;
    const double per_second = static_cast<double>(tail_->sequence() - before) /
                              std::max(1e-6, absl::ToDoubleSeconds(absl::Now() - begin));
    per_second_ = (1 - kNewestShare) * per_second_ + kNewestShare * per_second;
  }
  return absl::OkStatus();
}

void LogFollower::NoteIngested(SequenceNumber sequence) {
  const MutexLock lock(&ingested_mutex_);
  // While nothing follows, `followed_` is the largest number.
  ingested_.erase(ingested_.begin(), ingested_.upper_bound(followed_));
  if (sequence > followed_) ingested_.insert(sequence);
  ++ingested_count_;
}

void LogFollower::BeginIngestion() {
  const MutexLock lock(&ingested_mutex_);
  ++ingestions_;
}

void LogFollower::EndIngestion() {
  const MutexLock lock(&ingested_mutex_);
  --ingestions_;
  ingestion_ended_.NotifyAll();
}

uint64_t LogFollower::CountIngested(bool wait) {
  MutexLock lock(&ingested_mutex_);
  const auto end = std::chrono::steady_clock::now() + kIngestionPatience;
  while (wait && ingestions_ > 0 && ingestion_ended_.WaitUntil(&lock, end)) {
  }
  return ingested_count_;
}

SequenceNumber LogFollower::NextIngested(SequenceNumber sequence) const {
  const MutexLock lock(&ingested_mutex_);
  const auto next = ingested_.upper_bound(sequence);
  return next == ingested_.end() ? std::numeric_limits<SequenceNumber>::max() : *next;
}

absl::Status LogFollower::PassIngested() {
  SequenceNumber last = tail_->sequence();
  while (NextIngested(last) == last + 1) ++last;
  if (last == tail_->sequence()) return absl::OkStatus();
  for (const Member& member : members_) {
    IndexWriter::Update update(member.index->writer().get());
    Anchor anchor = update.anchor();
    RETURN_IF_ERROR(update.Publish(last, std::move(anchor)));
  }
  RestartTail(last, tail_->position());
  return absl::OkStatus();
}

absl::Status LogFollower::Step(SequenceNumber until,
                               std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot) {
  Updates updates;
  for (const auto& member : members_) {
    updates.of_member.push_back(
        std::make_unique<IndexWriter::Update>(member.index->writer().get()));
  }
  updates.status.resize(members_.size());
  absl::Status status = Advance(until, snapshot, &updates);
  for (Family& family : families_) family.source = nullptr;
  if (status.ok()) status = CheckFamilies(&updates);
  if (!status.ok()) return status;
  if (doubted_.exchange(false)) return Doubted();  // of which the caller fails all
  Publish(&updates);
  updates.of_member.clear();
  size_t kept = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (updates.status[i].ok()) {
      std::swap(members_[kept++], members_[i]);
    } else {
      on_lost_(members_[i].index, updates.status[i]);
    }
  }
  if (kept < members_.size()) {
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(kept), members_.end());
    RestartTail(tail_->sequence(), tail_->position());
  }
  NoteProgress();
  return absl::OkStatus();
}

absl::Status LogFollower::CheckFamilies(Updates* updates) {
  if (!watches_families_ || tail_->newest_family() <= newest_family_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::set<uint32_t> live, LiveColumnFamilyIds(db_));
  newest_family_ = tail_->newest_family();
  for (size_t i = 0; i < members_.size(); ++i) {
    FollowedIndex& index = *members_[i].index;
    if (updates->of_member[i] == nullptr || live.contains(index.column_family_id())) continue;
    updates->of_member[i] = nullptr;
    updates->status[i] = FamilyIsGone(&index);
  }
  return absl::OkStatus();
}

void LogFollower::Publish(Updates* updates) {
  for (size_t i = 0; i < members_.size(); ++i) {
    std::unique_ptr<IndexWriter::Update>& update = updates->of_member[i];
    if (update == nullptr) continue;
    Anchor anchor = update->anchor();
    anchor.MoveTo(tail_->position());
    const FollowedIndex& index = *members_[i].index;
    std::unique_ptr<SnapshotSource> source;  // only if a row may have a unique key already
    const auto row_has_key = [&](std::string_view primary_key, const KeyColumn& keys,
                                 size_t k) -> absl::StatusOr<bool> {
      if (source == nullptr) {
        ASSIGN_OR_RETURN(source, SnapshotSource::FromDb(db_, index.column_family()));
      }
      return ExistingRowHasKey(*source, index.spec(), primary_key, keys, k);
    };
    updates->status[i] = update->Publish(tail_->sequence(), std::move(anchor), row_has_key);
  }
}

absl::Status LogFollower::Advance(SequenceNumber until,
                                  std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot,
                                  Updates* updates) {
  bool has_looked_up = false;
  do {
    RETURN_IF_ERROR(tail_->Read(until, UpdateLog::kSliceBytes, absl::MakeSpan(changes_)));
    for (size_t i = 0; i < families_.size(); ++i) {
      families_[i].settled.Settle(changes_[i]);
      has_looked_up |= HasLookUp(families_[i].settled);
    }
    // Rows are looked up as they are at the end, which is then where a snapshot is: nothing is
    // published before.
    if (has_looked_up && *snapshot == nullptr) {
      *snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
      if ((*snapshot)->snapshot() == nullptr) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "database '%s' does not support snapshots (inplace_update_support)", db_->GetName()));
      }
    }
    if (has_looked_up) until = (*snapshot)->snapshot()->GetSequenceNumber();
    RETURN_IF_ERROR(ApplySlice(*snapshot, updates));
  } while (has_looked_up && tail_->sequence() < until);
  return absl::OkStatus();
}

absl::Status LogFollower::ApplySlice(const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                                     Updates* updates) {
  for (size_t i = 0; i < families_.size(); ++i) {
    Family& family = families_[i];
    if (changes_[i].empty()) continue;
    if (family.source == nullptr && HasLookUp(family.settled)) {
      ASSIGN_OR_RETURN(std::unique_ptr<SnapshotSource> source,
                       SourceAt(db_, family.handle, snapshot));
      family.source = std::move(source);
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].index->column_family_id() != family.handle->GetID()) continue;
      if (updates->of_member[m] == nullptr) continue;
      absl::Status s = ApplyTo(members_[m], family, updates->of_member[m].get());
      if (s.ok()) continue;
      updates->of_member[m] = nullptr;
      updates->status[m] = std::move(s);
    }
  }
  return absl::OkStatus();
}

absl::Status LogFollower::ApplyTo(const Member& member, const Family& family,
                                  IndexWriter::Update* update) {
  // An exception of an index's extractor is that index's error alone.
  return Guarded("applying changed rows", [&]() -> absl::Status {
    RETURN_IF_ERROR(
        member.extractor->Extract(family.settled, family.source.get(), member.updates.get()));
    return update->Apply(*member.updates);
  });
}

absl::Status LogFollower::Join(const std::shared_ptr<FollowedIndex>& index) {
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(index->spec()));

  const MutexLock lock(&mutex_);
  if (closed_) return absl::CancelledError("the database has been closed");
  if (watches_families_) {
    ASSIGN_OR_RETURN(const std::set<uint32_t> live, LiveColumnFamilyIds(db_));
    if (!live.contains(index->column_family_id())) return FamilyIsGone(index.get());
  }
  const std::shared_ptr<IndexWriter> writer = index->writer();
  const auto snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   SourceAt(db_, index->column_family(), snapshot));
  CatchUpOptions options;
  options.durable = false;
  options.cancelled = &index->cancelled();
  RETURN_IF_ERROR(CatchUp(*source, options, writer.get(), live_).status());
  FollowTo(source->sequence(), snapshot).IgnoreError();
  Member joined{index, std::make_unique<ChangeExtractor>(std::move(extractor)),
                std::make_unique<RowUpdates>(index->codec().kind())};
  const LogPosition position = IndexWriter::Update(writer.get()).anchor().log;
  // By their names, so that updates of several begin in one order, whoever joined first.
  members_.insert(std::upper_bound(members_.begin(), members_.end(), joined,
                                   [](const auto& a, const auto& b) {
                                     return a.index->name() < b.index->name();
                                   }),
                  std::move(joined));
  RestartTail(source->sequence(), position);
  return absl::OkStatus();
}

void LogFollower::Leave(const FollowedIndex& index) {
  const MutexLock lock(&mutex_);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const auto& m) { return m.index.get() == &index; });
  if (member == members_.end()) return;
  members_.erase(member);
  RestartTail(tail_->sequence(), tail_->position());
}

void LogFollower::Fail(absl::FunctionRef<bool(const FollowedIndex&)> is_failing,
                       const absl::Status& why) {
  const MutexLock lock(&mutex_);
  if (tail_ == nullptr) return;
  const size_t before = members_.size();
  for (size_t i = 0; i < members_.size();) {
    const std::shared_ptr<FollowedIndex> index = members_[i].index;
    if (!is_failing(*index)) {
      ++i;
      continue;
    }
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
    on_lost_(index, why);
  }
  if (members_.size() < before) RestartTail(tail_->sequence(), tail_->position());
}

void LogFollower::FailAll(const absl::Status& why) {
  for (const auto& member : members_) on_lost_(member.index, why);
  members_.clear();
  RestartTail(0, {});
}

void LogFollower::RestartTail(SequenceNumber sequence, LogPosition position) {
  const absl::Status made = Guarded("following the database's log", [&] {
    mutex_.AssertHeld();
    MakeTail(sequence, position);
    return absl::OkStatus();
  });
  if (!made.ok()) return FailAll(made);
  NoteProgress();
}

void LogFollower::MakeTail(SequenceNumber sequence, LogPosition position) {
  tail_ = nullptr;
  families_.clear();
  changes_.clear();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const auto& member : members_) {
    rocksdb::ColumnFamilyHandle* const handle = member.index->column_family();
    if (std::none_of(handles.begin(), handles.end(),
                     [&](const auto* h) { return h->GetID() == handle->GetID(); })) {
      handles.push_back(handle);
    }
  }
  if (handles.empty()) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles) families_.push_back({handle, {}, nullptr});
  changes_.resize(handles.size());
  tail_ = std::make_unique<LogTail>(db_, std::move(handles), sequence, position, live_);
}

void LogFollower::NoteProgress() {
  const MutexLock lock(&progress_mutex_);
  if (followed_ == kNothingFollows) current_at_ = absl::Now();
  followed_ = tail_ == nullptr ? kNothingFollows : tail_->sequence();
  progressed_.NotifyAll();
}

absl::Time LogFollower::current_at() const {
  const MutexLock lock(&progress_mutex_);
  return followed_ == kNothingFollows ? absl::Now() : current_at_;
}

uint64_t LogFollower::log_number() const {
  const MutexLock lock(&mutex_);
  return tail_ == nullptr ? 0 : tail_->position().log_number;
}

void LogFollower::Close() {
  const MutexLock lock(&mutex_);
  const std::unique_lock<std::shared_mutex> use(use_mutex_);
  closed_ = true;
  members_.clear();
  RestartTail(0, {});
}

}  // namespace cairn
