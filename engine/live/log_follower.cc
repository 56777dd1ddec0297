#include "engine/live/log_follower.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/log/update_log.h"
#include "engine/serve/existing_rows.h"
#include "engine/source/db_source.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

bool HasLookUp(const SettledChanges& changes) {
  return std::any_of(changes.rows().begin(), changes.rows().end(),
                     [](const RowChange& row) { return row.kind == RowChangeKind::kLookUp; });
}

// The lag of the indexes, in sequence numbers, that is always allowed: a few milliseconds of work.
constexpr SequenceNumber kMinBacklog = 10000;
// The longest delay of a writer before it has to stop.
constexpr absl::Duration kLongestDelay = absl::Milliseconds(10);
// How long a writer waits for another thread to follow before it follows itself.
constexpr absl::Duration kPatience = absl::Milliseconds(20);
// How often a query that waits checks whether it has been cancelled or is late, and how often it
// tries to get a lock.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(2);
constexpr absl::Duration kLockInterval = absl::Microseconds(200);

// The value of followed_ if there is nothing to follow.
constexpr SequenceNumber kNothingFollows = std::numeric_limits<SequenceNumber>::max();

// The size of a slice of the log for Publishing::kOnce. Such a slice is large enough that a batch
// finds neighboring rows in one pass, but small compared with an index.
constexpr size_t kLargeSliceBytes = size_t{64} << 20;
// Memory for a slice of the log is kept for the next one, unless a record was larger than this.
constexpr size_t kMaxKept = 4 * UpdateLog::kSliceBytes;

// The maximum number of attempts to find equal versions while new ones are published.
constexpr int kTries = 16;

// Holds a mutex for its lifetime, unless `stop` has ended the wait for it. Then `status` is the
// error, and the caller must not use what the mutex guards.
class ABSL_SCOPED_LOCKABLE LockUnlessStopped {
 public:
  // The analysis does not follow a lock that depends on a status.
  LockUnlessStopped(Mutex* mutex, const StopCondition& stop)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!stop.may_stop()) mutex->Lock();
    while (stop.may_stop() && !mutex->TryLock()) {
      if (status_ = stop.Check(); !status_.ok()) return;
      absl::SleepFor(kLockInterval);
    }
    lock_.emplace(mutex, std::adopt_lock);
  }
  ~LockUnlessStopped() ABSL_UNLOCK_FUNCTION() {}

  const absl::Status& status() const { return status_; }

 private:
  std::optional<MutexLock> lock_;
  absl::Status status_;
};

absl::Status Doubted() {
  return absl::FailedPreconditionError(
      "a write to the database failed, but its record may be in the log");
}

absl::Status Closed() {
  return absl::FailedPreconditionError("the database has been closed");
}

}  // namespace

LogFollower::LogFollower(rocksdb::DB* db, LiveLog live, OnLost on_lost, Publishing publishing,
                         LogFollower* main)
    : db_(db),
      live_(std::move(live)),
      on_lost_(std::move(on_lost)),
      publishing_(publishing),
      main_(main),
      followed_(kNothingFollows),
      snapshots_(db),
      manifest_(db),
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

absl::Status LogFollower::Follow(SequenceNumber sequence, const StopCondition& stop) {
  {
    MutexLock lock(&progress_mutex_);
    while (followed_ < sequence && following_) {
      if (!stop.may_stop()) {
        progressed_.Wait(&lock);
        continue;
      }
      RETURN_IF_ERROR(stop.Check());
      progressed_.WaitUntil(
          &lock, std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kCheckInterval));
    }
    if (followed_ >= sequence) return closed_ ? Closed() : absl::OkStatus();
    following_ = true;
  }
  const absl::Cleanup done = [&] {
    const MutexLock lock(&progress_mutex_);
    following_ = false;
    progressed_.NotifyAll();
  };
  const LockUnlessStopped lock(&mutex_, stop);
  RETURN_IF_ERROR(lock.status());
  if (closed_) return Closed();
  if (tail_ == nullptr || tail_->sequence() >= sequence) return absl::OkStatus();
  return FollowTo(db_->GetLatestSequenceNumber(), nullptr, stop);
}

absl::Status LogFollower::FollowUpTo(SequenceNumber sequence, const StopCondition& stop) {
  const LockUnlessStopped lock(&mutex_, stop);
  RETURN_IF_ERROR(lock.status());
  return closed_ ? Closed() : FollowTo(sequence, nullptr, stop);
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> LogFollower::Current(
    const FollowedIndex& index, const StopCondition& stop) {
  while (true) {
    ASSIGN_OR_RETURN(std::shared_ptr<const IndexVersion> current, CurrentIfReady(index, stop));
    if (current != nullptr) return current;
    RETURN_IF_ERROR(index.Ready().status());  // OK if it has become ready again
  }
}

absl::StatusOr<std::shared_ptr<const IndexVersion>> LogFollower::CurrentIfReady(
    const FollowedIndex& index, const StopCondition& stop) {
  RETURN_IF_ERROR(stop.Check());
  HeedDoubt();
  absl::StatusOr<std::shared_ptr<IndexWriter>> ready = index.Ready();
  if (!ready.ok()) return nullptr;
  ASSIGN_OR_RETURN(const SequenceNumber latest, Latest());
  while (true) {
    std::shared_ptr<const IndexVersion> version = (*ready)->version();
    if (version->sequence >= latest) return version;
    RETURN_IF_ERROR(stop.Check());
    RETURN_IF_ERROR(Follow(latest, stop));
    ready = index.Ready();
    if (!ready.ok()) return nullptr;
  }
}

absl::StatusOr<std::vector<std::shared_ptr<const IndexVersion>>> LogFollower::CurrentTogether(
    absl::Span<const std::shared_ptr<FollowedIndex>> indexes, const StopCondition& stop) {
  for (const auto& index : indexes) {
    RETURN_IF_ERROR(Current(*index, stop).status());
  }
  std::vector<std::shared_ptr<const IndexVersion>> versions(indexes.size());
  const auto take = [&] {
    for (size_t i = 0; i < indexes.size(); ++i) versions[i] = indexes[i]->writer()->version();
    return std::all_of(versions.begin(), versions.end(), [&](const auto& version) {
      return version->sequence == versions[0]->sequence;
    });
  };
  // All are published within a few microseconds, so one or two attempts are nearly always enough.
  // While the log is not read, nothing is published.
  for (int tries = 0; tries < kTries; ++tries) {
    if (take()) return versions;
  }
  const LockUnlessStopped lock(&mutex_, stop);
  RETURN_IF_ERROR(lock.status());
  for (const auto& index : indexes) RETURN_IF_ERROR(index->Ready().status());
  if (take()) return versions;
  return absl::FailedPreconditionError("the indexes are not at one sequence number");
}

absl::StatusOr<LogFollower::State> LogFollower::CurrentState(const FollowedIndex& index,
                                                             const StopCondition& stop) {
  RETURN_IF_ERROR(Current(index, stop).status());
  State state;
  const auto take_snapshot = [&] {
    state.snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
    return state.snapshot->snapshot() == nullptr
               ? absl::FailedPreconditionError(absl::StrFormat(
                     "database '%s' does not support snapshots (inplace_update_support)",
                     db_->GetName()))
               : absl::OkStatus();
  };
  const auto is_at_snapshot = [&] {
    state.writer = index.writer();
    state.version = state.writer->version();
    return state.version->sequence == state.snapshot->snapshot()->GetSequenceNumber();
  };
  {  // Usually there was no write since.
    const std::shared_lock<std::shared_mutex> use(use_mutex_);
    if (closed_) return Closed();
    RETURN_IF_ERROR(take_snapshot());
    if (is_at_snapshot() && index.Ready().ok()) return state;
  }
  const LockUnlessStopped lock(&mutex_, stop);
  RETURN_IF_ERROR(lock.status());
  if (closed_) return Closed();
  RETURN_IF_ERROR(take_snapshot());
  RETURN_IF_ERROR(FollowTo(state.snapshot->snapshot()->GetSequenceNumber(), state.snapshot, stop));
  RETURN_IF_ERROR(index.Ready().status());
  if (is_at_snapshot()) return state;
  return absl::FailedPreconditionError(absl::StrFormat(
      "index %s is not at the state of a snapshot that was just taken", Quoted(index.name())));
}

bool LogFollower::LimitBacklog(absl::Duration longest, bool may_wait, absl::Duration* waited) {
  const SequenceNumber followed = followed_.load(std::memory_order_relaxed);
  if (followed == kNothingFollows) return true;
  const SequenceNumber latest = db_->GetLatestSequenceNumber();
  if (latest <= followed + kMinBacklog / 2) return true;
  const SequenceNumber behind = latest - followed;
  const double numbers = speed_.per_second() * absl::ToDoubleSeconds(longest);
  if (numbers >= static_cast<double>(behind) * 2) return true;
  const auto most = std::max(kMinBacklog, static_cast<SequenceNumber>(numbers));
  if (behind <= most / 2) return true;
  if (!may_wait) return behind <= most;
  const absl::Time begin = absl::Now();
  const auto deadline = [](absl::Duration wait) {
    return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  };
  if (behind <= most) {
    const double share = static_cast<double>(2 * behind - most) / static_cast<double>(most);
    const auto end = deadline(share * kLongestDelay);
    MutexLock lock(&progress_mutex_);
    if (!following_) return true;
    while (following_ && followed_ < latest - most / 2 && progressed_.WaitUntil(&lock, end)) {
    }
    *waited = absl::Now() - begin;
    return true;
  }
  const SequenceNumber wanted = latest - most;
  while (true) {
    {
      // Other threads follow concurrently, and take more at a time, so waiting is faster.
      MutexLock lock(&progress_mutex_);
      const auto end = deadline(kPatience);
      while (followed_ < wanted && progressed_.WaitUntil(&lock, end)) {
      }
      if (followed_ >= wanted) break;
      if (following_) continue;
    }
    if (!Follow(wanted).ok()) break;
  }
  *waited = absl::Now() - begin;
  return true;
}

absl::Status LogFollower::FollowTo(SequenceNumber until,
                                   std::shared_ptr<rocksdb::ManagedSnapshot> snapshot,
                                   const StopCondition& stop) {
  KeepVersions();
  bool awaited = false;
  while (tail_ != nullptr && tail_->sequence() < until) {
    RETURN_IF_ERROR(stop.Check());
    std::shared_ptr<rocksdb::ManagedSnapshot> kept = snapshots_.Next();
    const bool ends_at_kept = kept != nullptr && kept->snapshot()->GetSequenceNumber() <= until;
    const SequenceNumber before = tail_->sequence();
    const absl::Time begin = absl::Now();
    const absl::Status status = Guarded("following the database's log", [&]() -> absl::Status {
      mutex_.AssertHeld();
      return ends_at_kept ? Step(kept->snapshot()->GetSequenceNumber(), &kept)
                          : Step(until, &snapshot);
    });
    KeepVersions();
    // The missing number may belong to a write or an ingestion that has not ended yet, and the log
    // may end in a record that is still being written.
    const bool may_come = absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
    if (may_come && !std::exchange(awaited, true)) {
      unlogged().AwaitAll();
      continue;
    }
    if (!status.ok()) {
      doubted_.exchange(false) ? FailAll(status) : FailReaders(status);
      continue;
    }
    const SequenceNumber reached = tail_ == nullptr ? 0 : tail_->sequence();
    if (reached <= before) continue;
    awaited = false;
    speed_.Note(reached - before, absl::Now() - begin, slice_is_full_);
  }
  return absl::OkStatus();
}

absl::Status LogFollower::Step(SequenceNumber until,
                               std::shared_ptr<rocksdb::ManagedSnapshot>* snapshot) {
  const SequenceNumber start = tail_->sequence();
  const LogPosition position = tail_->position();
  slice_is_full_ = false;
  Updates updates;
  // Includes members that do not take part yet, because all updates begin in one order.
  for (const auto& member : members_) {
    updates.of_member.push_back(
        std::make_unique<IndexWriter::Update>(member.index->writer().get()));
  }
  updates.status.resize(members_.size());
  absl::Status status = Advance(until, snapshot, &updates);
  for (Family& family : families_) family.source = nullptr;
  if (status.ok()) status = CheckFamilies(&updates);
  if (status.ok() && doubted_) status = Doubted();  // the caller makes all leave
  if (!status.ok()) {
    // Applied changes are undone, so they must be read again.
    updates.of_member.clear();
    for (Member& member : members_) {
      if (member.from > start) continue;
      member.from = start;
      member.position = position;
    }
    tail_ = nullptr;
    RestartTail();
    return status;
  }
  Publish(&updates);
  updates.of_member.clear();
  size_t kept = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (updates.status[i].ok()) {
      std::swap(members_[kept++], members_[i]);
    } else {
      Lose(members_[i], updates.status[i]);
    }
  }
  if (kept < members_.size()) {
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(kept), members_.end());
    RestartTail();
  } else {
    NoteProgress();
  }
  return absl::OkStatus();
}

void LogFollower::Publish(Updates* updates) {
  for (size_t i = 0; i < members_.size(); ++i) {
    std::unique_ptr<IndexWriter::Update>& update = updates->of_member[i];
    if (update == nullptr || !TakesPart(members_[i])) continue;
    Anchor anchor = update->anchor();
    anchor.MoveTo(tail_->position());
    const FollowedIndex& index = *members_[i].index;
    std::unique_ptr<SnapshotSource> source;  // only if a row may have a unique key already
    const auto row_has_key = [&](std::string_view primary_key, const EncodedKeys& keys,
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
  const bool once = publishing_ == Publishing::kOnce;
  const size_t slice = once ? kLargeSliceBytes : speed_.slice_bytes();
  bool has_looked_up = false;
  size_t bytes = 0;
  do {
    const SequenceNumber passed = unlogged().PassIngested(tail_->sequence(), until);
    if (passed > tail_->sequence()) tail_->PassTo(passed);
    if (tail_->sequence() >= until) break;
    SequenceNumber stop = until;
    for (const Member& member : members_) {
      if (!TakesPart(member)) stop = std::min(stop, member.from);
    }
    const SequenceNumber start = tail_->sequence();
    RETURN_IF_ERROR(
        ReadSlice(stop, slice, *snapshot == nullptr ? nullptr : (*snapshot)->snapshot()));
    for (const RowChanges& c : changes_) bytes += c.bytes();
    slice_is_full_ = bytes >= slice && tail_->sequence() < stop;
    for (size_t i = 0; i < families_.size(); ++i) {
      families_[i].settled.Settle(changes_[i]);
      has_looked_up |= HasLookUp(families_[i].settled);
    }
    // The lookups read rows at the snapshot. So this loop continues to the snapshot's sequence
    // number, and no earlier state is published.
    if (has_looked_up && *snapshot == nullptr) {
      *snapshot = snapshots_.NextOrNew(tail_->sequence());
      if ((*snapshot)->snapshot() == nullptr) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "database '%s' does not support snapshots (inplace_update_support)", db_->GetName()));
      }
    }
    if (has_looked_up) until = (*snapshot)->snapshot()->GetSequenceNumber();
    RETURN_IF_ERROR(ApplySlice(start, *snapshot, updates));
    // All members have failed, so there is no reason to continue.
    if (std::all_of(updates->of_member.begin(), updates->of_member.end(),
                    [](const auto& update) { return update == nullptr; })) {
      break;
    }
    // Logged and unlogged writes may alternate, so a slice may have many parts.
  } while ((has_looked_up || once || bytes < slice) && tail_->sequence() < until);
  return absl::OkStatus();
}

absl::Status LogFollower::ApplySlice(SequenceNumber start,
                                     const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                                     Updates* updates) {
  const auto fail = [&](size_t member, absl::Status why) {
    updates->of_member[member] = nullptr;
    updates->status[member] = std::move(why);
  };
  for (size_t m = 0; m < members_.size(); ++m) {
    if (members_[m].joining == nullptr || !members_[m].index->cancelled()) continue;
    fail(m, absl::CancelledError("catching up was cancelled"));
  }
  for (size_t i = 0; i < families_.size(); ++i) {
    Family& family = families_[i];
    if (changes_[i].empty()) continue;
    if (family.source == nullptr && HasLookUp(family.settled)) {
      ASSIGN_OR_RETURN(std::unique_ptr<SnapshotSource> source,
                       SourceAt(db_, family.handle, snapshot, Trial::kNone));
      family.source = std::move(source);
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].index->column_family_id() != family.handle->GetID()) continue;
      if (updates->of_member[m] == nullptr || members_[m].from > start) continue;
      absl::Status s = ApplyTo(members_[m], family, updates->of_member[m].get());
      if (!s.ok()) fail(m, std::move(s));
    }
    if (changes_[i].memory_bytes() > kMaxKept) GiveBackMemory(i);
  }
  return absl::OkStatus();
}

absl::Status LogFollower::ApplyTo(const Member& member, const Family& family,
                                  IndexWriter::Update* update) {
  // An exception of an index's extractor is only that index's error.
  return Guarded("applying changed rows", [&]() -> absl::Status {
    RETURN_IF_ERROR(
        member.extractor->Extract(family.settled, family.source.get(), member.updates.get()));
    return update->Apply(*member.updates);
  });
}

void LogFollower::Leave(const FollowedIndex& index) {
  const MutexLock lock(&mutex_);
  snapshots_.Forget(index);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const auto& m) { return m.index.get() == &index; });
  if (member == members_.end()) return;
  members_.erase(member);
  RestartTail();
}

void LogFollower::Fail(absl::FunctionRef<bool(const FollowedIndex&)> is_failing,
                       const absl::Status& why) {
  const MutexLock lock(&mutex_);
  LoseThose([&](const Member& member) { return is_failing(*member.index); },
            [&](const Member&) { return why; });
}

void LogFollower::Lose(const Member& member, const absl::Status& why) {
  snapshots_.Forget(*member.index);
  if (member.joining != nullptr) {
    *member.joining = why;
  } else {
    on_lost_(member.index, why);
  }
}

void LogFollower::LoseThose(absl::FunctionRef<bool(const Member&)> is_lost,
                            absl::FunctionRef<absl::Status(const Member&)> why) {
  const size_t before = members_.size();
  for (size_t i = 0; i < members_.size();) {
    if (!is_lost(members_[i])) {
      ++i;
      continue;
    }
    const Member member = std::move(members_[i]);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
    Lose(member, why(member));
  }
  if (members_.size() < before) RestartTail();
}

void LogFollower::FailAll(const absl::Status& why) {
  LoseThose([](const Member&) { return true; }, [&](const Member&) { return why; });
}

void LogFollower::FailReaders(const absl::Status& why) {
  const auto takes_part = [&](const Member& member) {
    mutex_.AssertHeld();
    return TakesPart(member);
  };
  LoseThose(takes_part, [&](const Member&) { return why; });
}

void LogFollower::RestartTail() {
  const absl::Status made = Guarded("following the database's log", [&] {
    mutex_.AssertHeld();
    MakeTail();
    return absl::OkStatus();
  });
  if (!made.ok()) return FailAll(made);
  NoteProgress();
}

void LogFollower::EndTail() {
  for (Member& member : members_) {
    if (tail_ == nullptr || !TakesPart(member)) continue;
    member.from = tail_->sequence();
    member.position = tail_->position();
  }
  tail_ = nullptr;
}

void LogFollower::MakeTail() {
  EndTail();
  families_.clear();
  changes_.clear();
  if (members_.empty()) return;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const auto& member : members_) {
    rocksdb::ColumnFamilyHandle* const handle = member.index->column_family();
    if (std::none_of(handles.begin(), handles.end(),
                     [&](const auto* h) { return h->GetID() == handle->GetID(); })) {
      handles.push_back(handle);
    }
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) families_.push_back({handle, {}, nullptr});
  changes_.resize(handles.size());
  const auto lowest =
      std::min_element(members_.begin(), members_.end(),
                       [](const Member& a, const Member& b) { return a.from < b.from; });
  tail_ = std::make_unique<LogTail>(db_, std::move(handles), lowest->from, lowest->position, live_);
}

void LogFollower::NoteProgress() {
  const MutexLock lock(&progress_mutex_);
  if (followed_ == kNothingFollows) current_at_ = absl::Now();
  followed_ = tail_ == nullptr ? kNothingFollows : tail_->sequence();
  if (main_ == nullptr) unlogged_.DropUpTo(followed_);
  progressed_.NotifyAll();
}

SequenceNumber LogFollower::Behind() const {
  const absl::StatusOr<SequenceNumber> latest = Latest();
  const SequenceNumber followed = followed_.load();
  return latest.ok() && *latest > followed ? *latest - followed : 0;
}

absl::Time LogFollower::current_at() const {
  const MutexLock lock(&progress_mutex_);
  return followed_ == kNothingFollows ? absl::Now() : current_at_;
}

void LogFollower::CloseLogFile() {
  const MutexLock lock(&mutex_);
  if (tail_ != nullptr) tail_->CloseFile();
}

uint64_t LogFollower::log_number() const {
  const MutexLock lock(&mutex_);
  return tail_ == nullptr ? 0 : std::max<uint64_t>(1, tail_->position().log_number);
}

void LogFollower::Close() {
  const MutexLock lock(&mutex_);
  const std::unique_lock<std::shared_mutex> use(use_mutex_);
  closed_ = true;
  members_.clear();
  snapshots_.ForgetAll();
  RestartTail();
}

}  // namespace cairn
