#include "engine/live/followed_index.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/log/wal_files.h"
#include "engine/open_index.h"
#include "index/escaped_text.h"

namespace cairn {

const char* IndexStateName(IndexState state) {
  switch (state) {
    case IndexState::kBuilding:
      return "building";
    case IndexState::kCatchingUp:
      return "catching up";
    case IndexState::kReady:
      return "ready";
    case IndexState::kStale:
      return "stale";
    case IndexState::kFailed:
      return "failed";
  }
  return "unknown";
}

void FollowedIndex::Set(IndexState state, absl::Status why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (dropped_) return;
  state_ = state;
  why_ = std::move(why);
  changed_.notify_all();
}

void FollowedIndex::BeginRepair() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++repairs_;
}

void FollowedIndex::EndRepair() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --repairs_;
  changed_.notify_all();
}

void FollowedIndex::Drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  dropped_ = true;
  state_ = IndexState::kFailed;
  why_ = absl::NotFoundError(absl::StrFormat("index %s was dropped", Quoted(name())));
  changed_.notify_all();
}

IndexState FollowedIndex::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

absl::Status FollowedIndex::Wait(absl::Time deadline) const {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    const bool ended = state_ != IndexState::kBuilding && state_ != IndexState::kCatchingUp;
    if (dropped_ || (ended && repairs_ == 0)) return why_;
    if (deadline == absl::InfiniteFuture()) {
      changed_.wait(lock);
    } else if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("index %s is %s still", Quoted(name()), IndexStateName(state_)));
    } else {
      changed_.wait_until(lock, absl::ToChronoTime(deadline));
    }
  }
}

std::shared_ptr<IndexWriter> FollowedIndex::writer() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return writer_;
}

std::shared_ptr<SecondaryIndex> FollowedIndex::index() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return index_;
}

absl::Status FollowedIndex::NotReady() const {
  switch (state_) {
    case IndexState::kReady:
      return absl::OkStatus();
    case IndexState::kBuilding:
    case IndexState::kCatchingUp:
      return absl::UnavailableError(
          absl::StrFormat("index %s is %s; IndexedDB::WaitUntilReady waits", Quoted(name()),
                          state_ == IndexState::kBuilding ? "being built" : "catching up"));
    case IndexState::kStale:
    case IndexState::kFailed:
      break;
  }
  if (dropped_) return absl::FailedPreconditionError(why_.message());
  return absl::FailedPreconditionError(absl::StrFormat(
      "index %s is %s, %s: %s", Quoted(name()), IndexStateName(state_),
      repairs_ > 0 ? "and will be built anew" : "until IndexedDB::RebuildIndex", why_.message()));
}

absl::StatusOr<std::shared_ptr<SecondaryIndex>> FollowedIndex::Ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status s = NotReady(); !s.ok()) return s;
  return index_;
}

absl::Status FollowedIndex::OpenWriter(rocksdb::DB* db, const OpenOptions& options) {
  absl::StatusOr<std::unique_ptr<IndexWriter>> opened = IndexWriter::Open(directory_, options);
  if (!opened.ok()) return opened.status();
  std::shared_ptr<IndexWriter> writer = *std::move(opened);
  writer->set_sync([db] { return SyncLog(db, /*read_only=*/false); });
  std::shared_ptr<SecondaryIndex> index = OverWriter(writer, options);
  const std::lock_guard<std::mutex> lock(mutex_);
  writer_.swap(writer);
  index_.swap(index);
  return absl::OkStatus();
}

void FollowedIndex::NoteStore(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  store_status_ = status;
}

void FollowedIndex::NoteMerge(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  merge_status_ = status;
}

IndexInfo FollowedIndex::Info() const {
  IndexInfo info;
  info.spec = spec_;
  info.directory = directory_;
  info.builds = builds;
  info.merges = merges;
  info.stores = stores;
  const std::lock_guard<std::mutex> lock(mutex_);
  info.state = state_;
  info.status = why_;
  info.store_status = store_status_;
  info.merge_status = merge_status_;
  if (state_ == IndexState::kBuilding) info.progress = progress;
  if (writer_ != nullptr) info.sequence = writer_->version()->sequence;
  return info;
}

}  // namespace cairn
