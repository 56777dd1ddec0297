#include "engine/live/log_follower.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/catch_up.h"
#include "engine/source/db_source.h"
#include "engine/source/no_source.h"

namespace cairn {
namespace {

// Changes that are held at a time, as in catching up.
constexpr size_t kSliceBytes = size_t{64} << 20;

bool HasLookUp(const SettledChanges& changes) {
  return std::any_of(changes.rows().begin(), changes.rows().end(),
                     [](const RowChange& row) { return row.kind == RowChangeKind::kLookUp; });
}

// Whether only other rows, or another spec, would help.
bool IsOfRows(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

struct LogFollower::Updates {
  std::vector<std::unique_ptr<IndexWriter::Update>> of_member;  // null where it has failed
  std::vector<absl::Status> status;                             // why
};

LogFollower::LogFollower(rocksdb::DB* db,
                         std::function<void(const std::shared_ptr<FollowedIndex>&)> on_stale)
    : db_(db), on_stale_(std::move(on_stale)), current_at_(absl::Now()) {}

LogFollower::~LogFollower() = default;

absl::Status LogFollower::Follow(SequenceNumber sequence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::FailedPreconditionError("the database has been closed");
  if (tail_ == nullptr) return absl::OkStatus();
  // Whoever waits behind this call is served by it, too.
  const SequenceNumber latest = db_->GetLatestSequenceNumber();
  if (tail_->sequence() < sequence) FollowTo(latest, nullptr).IgnoreError();  // each index says so
  if (tail_ != nullptr && tail_->sequence() >= latest) current_at_ = absl::Now();
  return absl::OkStatus();
}

absl::Status LogFollower::Follow() {
  SequenceNumber latest;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::FailedPreconditionError("the database has been closed");
    latest = db_->GetLatestSequenceNumber();
  }
  return Follow(latest);
}

absl::StatusOr<std::shared_ptr<SecondaryIndex>> LogFollower::Current(const FollowedIndex& index) {
  absl::StatusOr<std::shared_ptr<SecondaryIndex>> ready = index.Ready();
  if (!ready.ok()) return ready;
  const SequenceNumber latest = db_->GetLatestSequenceNumber();
  while (ready.ok() && (*ready)->sequence() < latest) {
    if (absl::Status s = Follow(latest); !s.ok()) return s;
    ready = index.Ready();
  }
  return ready;
}

absl::Status LogFollower::FollowTo(SequenceNumber until,
                                   std::shared_ptr<rocksdb::ManagedSnapshot> snapshot) {
  absl::Status status;
  Updates updates;
  try {
    for (const auto& member : members_) {
      updates.of_member.push_back(std::make_unique<IndexWriter::Update>(member->writer().get()));
    }
    updates.status.resize(members_.size());
    status = Advance(until, std::move(snapshot), &updates);
    for (Family& family : families_) family.source = nullptr;
    if (status.ok()) {
      for (const auto& update : updates.of_member) {
        if (update == nullptr) continue;
        Anchor anchor = update->anchor();
        anchor.MoveTo(tail_->position());
        update->Publish(tail_->sequence(), std::move(anchor));
      }
    }
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory while following the database's log");
  } catch (const std::exception& e) {
    status =
        absl::InternalError(absl::StrFormat("while following the database's log: %s", e.what()));
  }
  updates.of_member.clear();
  if (!status.ok()) {
    FailAll(status);
    return status;
  }
  std::vector<std::shared_ptr<FollowedIndex>> members;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (updates.status[i].ok()) {
      members.push_back(members_[i]);
    } else {
      Fail(members_[i], updates.status[i]);
    }
  }
  if (members.size() < members_.size()) {
    members_ = std::move(members);
    RestartTail(tail_->sequence(), tail_->position());
  }
  return absl::OkStatus();
}

absl::Status LogFollower::Advance(SequenceNumber until,
                                  std::shared_ptr<rocksdb::ManagedSnapshot> snapshot,
                                  Updates* updates) {
  while (tail_->sequence() < until) {
    if (absl::Status s = tail_->Read(until, kSliceBytes, absl::MakeSpan(changes_)); !s.ok()) {
      return s;
    }
    bool look_up = false;
    for (size_t i = 0; i < families_.size(); ++i) {
      families_[i].settled.Settle(changes_[i]);
      look_up |= HasLookUp(families_[i].settled);
    }
    // Rows are looked up as they are at the end, which is then where a snapshot is.
    if (look_up && snapshot == nullptr) {
      snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
      if (snapshot->snapshot() == nullptr) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "database '%s' does not support snapshots (inplace_update_support)", db_->GetName()));
      }
      until = snapshot->snapshot()->GetSequenceNumber();
    }
    if (absl::Status s = ApplySlice(snapshot, updates); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status LogFollower::ApplySlice(const std::shared_ptr<rocksdb::ManagedSnapshot>& snapshot,
                                     Updates* updates) {
  for (size_t i = 0; i < families_.size(); ++i) {
    Family& family = families_[i];
    if (changes_[i].empty()) continue;
    if (family.source == nullptr && HasLookUp(family.settled)) {
      absl::StatusOr<std::unique_ptr<SnapshotSource>> source =
          SourceAt(db_, family.handle, snapshot);
      if (!source.ok()) return source.status();
      family.source = *std::move(source);
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m]->column_family_id() != family.handle->GetID()) continue;
      if (updates->of_member[m] == nullptr) continue;
      absl::Status s = ApplyTo(members_[m].get(), family, updates->of_member[m].get());
      if (s.ok()) continue;
      updates->of_member[m] = nullptr;
      updates->status[m] = std::move(s);
    }
  }
  return absl::OkStatus();
}

absl::Status LogFollower::ApplyTo(FollowedIndex* index, const Family& family,
                                  IndexWriter::Update* update) {
  const NoSource none;
  const SnapshotSource* source = &none;
  if (family.source != nullptr) source = family.source.get();
  try {
    if (absl::Status s = index->extractor->Extract(family.settled, *source, index->updates.get());
        !s.ok()) {
      return s;
    }
    return update->Apply(*index->updates);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while following the database's log");
  } catch (const std::exception& e) {  // from an extractor that is not ours
    return absl::InternalError(absl::StrFormat("while a row's keys were taken: %s", e.what()));
  }
}

absl::Status LogFollower::Join(const std::shared_ptr<FollowedIndex>& index, uint64_t disruptions) {
  absl::StatusOr<ChangeExtractor> extractor = ChangeExtractor::Create(index->spec());
  if (!extractor.ok()) return extractor.status();

  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::CancelledError("the database has been closed");
  const std::shared_ptr<IndexWriter> writer = index->writer();
  const auto snapshot = std::make_shared<rocksdb::ManagedSnapshot>(db_);
  const absl::StatusOr<std::unique_ptr<SnapshotSource>> source =
      SourceAt(db_, index->column_family(), snapshot);
  if (!source.ok()) return source.status();
  CatchUpOptions options;
  options.durable = false;
  options.cancelled = &index->cancelled;
  if (absl::Status s = CatchUp(**source, options, writer.get()).status(); !s.ok()) return s;
  if (tail_ != nullptr) FollowTo((*source)->sequence(), snapshot).IgnoreError();
  {
    const std::lock_guard<std::mutex> disruptions_lock(index->disruptions_mutex);
    if (index->disruptions != disruptions) {
      return absl::AbortedError("the rows have changed past the log meanwhile");
    }
  }
  index->extractor = std::make_unique<ChangeExtractor>(*std::move(extractor));
  index->updates = std::make_unique<RowUpdates>(index->codec().kind());
  members_.push_back(index);
  RestartTail((*source)->sequence(), IndexWriter::Update(writer.get()).anchor().log);
  index->Set(IndexState::kReady);
  current_at_ = absl::Now();
  return absl::OkStatus();
}

void LogFollower::Leave(const FollowedIndex& index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const auto& m) { return m.get() == &index; });
  if (member == members_.end()) return;
  members_.erase(member);
  RestartTail(tail_->sequence(), tail_->position());
}

void LogFollower::Fail(rocksdb::ColumnFamilyHandle* column_family, const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tail_ == nullptr) return;
  std::vector<std::shared_ptr<FollowedIndex>> failed;
  for (const auto& member : members_) {
    if (column_family == nullptr || member->column_family_id() == column_family->GetID()) {
      failed.push_back(member);
    }
  }
  for (const auto& index : failed) {
    members_.erase(std::find(members_.begin(), members_.end(), index));
    Fail(index, why);
  }
  if (!failed.empty()) RestartTail(tail_->sequence(), tail_->position());
}

void LogFollower::FailAll(const absl::Status& why) {
  for (const auto& member : members_) Fail(member, why);
  members_.clear();
  RestartTail(0, {});
}

void LogFollower::Fail(const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
  index->Set(IsOfRows(why) ? IndexState::kFailed : IndexState::kStale, why);
  if (!IsOfRows(why)) on_stale_(index);
}

void LogFollower::RestartTail(SequenceNumber sequence, LogPosition position) {
  tail_ = nullptr;
  families_.clear();
  changes_.clear();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  for (const auto& member : members_) {
    rocksdb::ColumnFamilyHandle* const handle = member->column_family();
    if (std::none_of(handles.begin(), handles.end(),
                     [&](const auto* h) { return h->GetID() == handle->GetID(); })) {
      handles.push_back(handle);
    }
  }
  if (handles.empty()) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles) families_.push_back({handle, {}, nullptr});
  changes_.resize(handles.size());
  tail_ = std::make_unique<LogTail>(db_, std::move(handles), sequence, position);
}

absl::Time LogFollower::current_at() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tail_ == nullptr ? absl::Now() : current_at_;
}

uint64_t LogFollower::log_number() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tail_ == nullptr ? 0 : tail_->position().log_number;
}

void LogFollower::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  members_.clear();
  RestartTail(0, {});
}

}  // namespace cairn
