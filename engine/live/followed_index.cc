#include "engine/live/followed_index.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/log/table_files.h"
#include "engine/log/wal_files.h"
#include "engine/util/key_order.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {

std::string_view IndexStateName(IndexState state) {
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

std::string FamilyWasDropped(const std::string& column_family) {
  return absl::StrFormat(
      "its column family %s was dropped; drop the index, or attach again with the handle of the "
      "new column family",
      Quoted(column_family));
}

FollowedIndex::FollowedIndex(IndexSpec spec, KeyCodec codec, const IndexCatalog* catalog,
                             IndexMark mark, rocksdb::ColumnFamilyHandle* column_family,
                             EventLog* log)
    : name_(spec.name),
      catalog_(*catalog),
      log_(log),
      directory_(catalog->DirectoryOf(name_)),
      mark_(std::move(mark)) {
  const uint32_t id = column_family == nullptr ? UINT32_MAX : column_family->GetID();
  Define(std::move(spec), std::move(codec), column_family, id);
}

FollowedIndex::FollowedIndex(const std::string& name, const IndexCatalog* catalog, IndexMark mark,
                             EventLog* log)
    : name_(name),
      catalog_(*catalog),
      log_(log),
      directory_(catalog->DirectoryOf(name_)),
      mark_(std::move(mark)) {
  IndexSpec unknown;
  unknown.name = name;
  unknown.parts.emplace_back();
  absl::StatusOr<KeyCodec> codec = unknown.Codec();
  if (!codec.ok()) throw std::bad_alloc();
  unread_ = std::make_unique<const Definition>(Definition{
      std::move(unknown), *std::move(codec), nullptr, UINT32_MAX, std::nullopt, /*is_read=*/false});
  defined_ = unread_.get();
}

void FollowedIndex::Define(IndexSpec spec, KeyCodec codec,
                           rocksdb::ColumnFamilyHandle* column_family, uint32_t column_family_id) {
  std::optional<KeyOrder> order;
  if (column_family != nullptr) order = KnownKeyOrderOf(column_family);
  read_ = std::make_unique<const Definition>(Definition{
      std::move(spec), std::move(codec), column_family, column_family_id, order, /*is_read=*/true});
  defined_ = read_.get();
}

IndexMark::Kind FollowedIndex::wanted() const {
  const MutexLock lock(&mark_mutex_);
  return mark_.kind;
}

std::string FollowedIndex::why_marked() const {
  const MutexLock lock(&mark_mutex_);
  return mark_.why;
}

std::string FollowedIndex::marked_spec() const {
  const MutexLock lock(&mark_mutex_);
  return mark_.spec;
}

absl::Status FollowedIndex::Mark(IndexMark::Kind kind, const std::string& why) {
  if (mark_.kind == IndexMark::Kind::kRemoved) return absl::OkStatus();
  IndexMark mark{kind, why, is_defined() ? spec().ToString() : mark_.spec};
  mark_in_doubt_ = true;
  absl::Status marked = catalog_.Mark(name(), mark);
  mark_in_doubt_ = !marked.ok();
  if (marked.ok()) mark_ = std::move(mark);
  return marked;
}

absl::Status FollowedIndex::MarkBuild(const std::string& why) {
  const MutexLock lock(&mark_mutex_);
  return Mark(IndexMark::Kind::kBuild, why);
}

absl::Status FollowedIndex::MarkRebuild(const std::string& why) {
  const MutexLock lock(&mark_mutex_);
  const bool is_first = mark_.kind == IndexMark::Kind::kBuild;
  RETURN_IF_ERROR(Mark(is_first ? IndexMark::Kind::kBuild : IndexMark::Kind::kRebuild, why));
  ++rebuild_requests_;
  return absl::OkStatus();
}

absl::Status FollowedIndex::MarkStale(const std::string& why, bool* marked) {
  const MutexLock lock(&mark_mutex_);
  if (mark_.kind != IndexMark::Kind::kNone) {
    return mark_in_doubt_ ? Mark(mark_.kind, mark_.why) : absl::OkStatus();
  }
  absl::Status s = Mark(IndexMark::Kind::kStale, why);
  if (marked != nullptr) *marked = s.ok();
  return s;
}

absl::Status FollowedIndex::MarkRemoved() {
  const MutexLock lock(&mark_mutex_);
  absl::Status marked = Mark(IndexMark::Kind::kRemoved, "");
  if (!marked.ok()) mark_in_doubt_ = !catalog_.Mark(name(), mark_).ok();  // the index remains
  return marked;
}

void FollowedIndex::Distrust(std::string_view why) {
  const MutexLock lock(&mark_mutex_);
  if (mark_.kind == IndexMark::Kind::kNone) {
    mark_in_doubt_ = true;
    mark_.kind = IndexMark::Kind::kStale;
    mark_.why = why;
  }
  WriteMarkInDoubt();
}

void FollowedIndex::RetryMark() {
  const MutexLock lock(&mark_mutex_);
  WriteMarkInDoubt();
}

void FollowedIndex::WriteMarkInDoubt() {
  if (!mark_in_doubt_) return;
  if (is_defined()) mark_.spec = spec().ToString();
  mark_in_doubt_ = !catalog_.Mark(name(), mark_).ok();
  if (mark_in_doubt_ && mark_.kind != IndexMark::Kind::kNone) {
    catalog_.MarkDamaged(name()).IgnoreError();  // otherwise the next time
  }
}

absl::Status FollowedIndex::MarkFollowing(IndexMark::Kind wanted,
                                          const std::function<bool()>& is_disturbed,
                                          const absl::Status& durable) {
  const MutexLock lock(&mark_mutex_);
  if (mark_.kind != wanted || is_disturbed()) {
    return absl::AbortedError("rows have changed past the log concurrently");
  }
  if (!durable.ok()) return Mark(IndexMark::Kind::kStale, std::string(durable.message()));
  return wanted == IndexMark::Kind::kNone ? absl::OkStatus() : Mark(IndexMark::Kind::kNone, "");
}

void FollowedIndex::Change(IndexState state, const absl::Status& why) {
  const IndexState before = std::exchange(state_, state);
  why_ = why;
  changed_.NotifyAll();
  if (!log_->has_listeners()) return;
  Guarded("reporting a state", [&] {
    log_->Report({name_, spec().column_family, before, state, why});
    return absl::OkStatus();
  }).IgnoreError();
}

void FollowedIndex::Set(IndexState state, const absl::Status& why, Repair repair) {
  {
    const MutexLock lock(&mutex_);
    if (repair == Repair::kBegins) ++repairs_;
    if (ended_) return;
    if (state_ == state && why_ == why) return;
    Change(state, why);
  }
  Log(state, why);
}

void FollowedIndex::Log(IndexState state, const absl::Status& why) const {
  const bool bad = state == IndexState::kStale || state == IndexState::kFailed;
  Guarded("writing the info log", [&] {
    log_->Write(bad ? rocksdb::InfoLogLevel::WARN_LEVEL : rocksdb::InfoLogLevel::INFO_LEVEL,
                absl::StrCat("index ", Quoted(name_), ": ", std::string(IndexStateName(state)),
                             why.ok() ? "" : ": ", why.message()));
    return absl::OkStatus();
  }).IgnoreError();
}

void FollowedIndex::LogFailure(const char* what, const absl::Status& status) const {
  Guarded("writing the info log", [&] {
    log_->Write(rocksdb::InfoLogLevel::WARN_LEVEL,
                absl::StrCat("index ", Quoted(name_), ": ", what, ": ", status.message()));
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status FollowedIndex::SetReady(bool built) {
  {
    const MutexLock lock(&mutex_);
    if (built) ++builds_;
    if (ended_ || state_ != IndexState::kCatchingUp) {
      return why_.ok() || state_ == IndexState::kBuilding
                 ? absl::AbortedError("the index was lost as it became ready")
                 : why_;
    }
    Change(IndexState::kReady, absl::OkStatus());
  }
  Log(IndexState::kReady, absl::OkStatus());
  return absl::OkStatus();
}

void FollowedIndex::BeginRepair() {
  const MutexLock lock(&mutex_);
  ++repairs_;
}

void FollowedIndex::EndRepair() {
  const MutexLock lock(&mutex_);
  --repairs_;
  changed_.NotifyAll();
}

void FollowedIndex::GiveUp(const absl::Status& why) {
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return;
    Change(IndexState::kFailed, why);
  }
  Log(IndexState::kFailed, why);
}

void FollowedIndex::End(absl::Status why) {
  {
    const MutexLock lock(&mutex_);
    ended_ = true;
    state_ = IndexState::kFailed;
    why_ = std::move(why);
    changed_.NotifyAll();
  }
  const std::lock_guard<std::shared_mutex> nobody_holds_it(column_family_mutex_);
}

IndexState FollowedIndex::state() const {
  const MutexLock lock(&mutex_);
  return state_;
}

absl::Status FollowedIndex::why() const {
  const MutexLock lock(&mutex_);
  return why_;
}

absl::Status FollowedIndex::Wait(absl::Time deadline) const {
  MutexLock lock(&mutex_);
  while (true) {
    const bool ready = state_ == IndexState::kReady && suspensions_ == 0;
    const bool lost = state_ == IndexState::kStale || state_ == IndexState::kFailed;
    if (ended_ || ((ready || lost) && repairs_ == 0)) return why_;
    if (deadline == absl::InfiniteFuture()) {
      changed_.Wait(&lock);
    } else if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("index %s is still %s", Quoted(name()),
                          state_ == IndexState::kReady ? "suspended by a change past the log"
                                                       : std::string(IndexStateName(state_))));
    } else {
      changed_.WaitUntil(&lock, absl::ToChronoTime(deadline));
    }
  }
}

std::shared_ptr<IndexWriter> FollowedIndex::writer() const {
  const MutexLock lock(&mutex_);
  return writer_;
}

absl::Status FollowedIndex::NotReady() const {
  switch (state_) {
    case IndexState::kReady:
      if (suspensions_ == 0) return absl::OkStatus();
      return absl::UnavailableError(
          absl::StrFormat("index %s: rows of its column family are being changed in a way that the "
                          "log does not contain; retry after that call has returned",
                          Quoted(name())));
    case IndexState::kBuilding:
    case IndexState::kCatchingUp:
      return absl::UnavailableError(
          absl::StrFormat("index %s is %s; IndexedDB::WaitUntilReady waits", Quoted(name()),
                          state_ == IndexState::kBuilding ? "being built" : "catching up"));
    case IndexState::kStale:
    case IndexState::kFailed:
      break;
  }
  if (ended_) return absl::FailedPreconditionError(why_.message());
  const bool failed = state_ == IndexState::kFailed;
  return absl::FailedPreconditionError(absl::StrFormat(
      "index %s %s: %s; %s", Quoted(name()), failed ? "has failed" : "is stale", why_.message(),
      repairs_ > 0 ? "it will be caught up or rebuilt"
      : failed     ? "fix that, then call IndexedDB::RebuildIndex"
                   : "IndexedDB::RebuildIndex rebuilds it"));
}

absl::StatusOr<std::shared_ptr<IndexWriter>> FollowedIndex::Ready() const {
  const MutexLock lock(&mutex_);
  RETURN_IF_ERROR(NotReady());
  return writer_;
}

void FollowedIndex::Suspend() {
  const MutexLock lock(&mutex_);
  ++suspensions_;
}

void FollowedIndex::Resume() {
  const MutexLock lock(&mutex_);
  --suspensions_;
  changed_.NotifyAll();
}

bool FollowedIndex::is_suspended() const {
  const MutexLock lock(&mutex_);
  return suspensions_ > 0;
}

absl::Status FollowedIndex::OpenWriter(rocksdb::DB* db, std::shared_ptr<OlderLogs> older_logs,
                                       UnloggedWrites* unlogged, const OpenOptions& options) {
  LetGoOfDirectory();  // close the previous one, if any
  OpenOptions storing = options;
  if (options.calibration == Calibration::kStored) storing.calibration = Calibration::kStore;
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> opened,
                   IndexWriter::Open(directory_, storing, IndexWriter::Access::kExclusive));
  std::shared_ptr<IndexWriter> writer = std::move(opened);
  const auto recorder = std::make_shared<TableFilesRecorder>(db, column_family());
  writer->set_database([db] { return SyncLog(db, /*read_only=*/false); },
                       [db, unlogged](SequenceNumber sequence, Anchor* anchor) {
                         return unlogged->MakeDurable(db, sequence, anchor);
                       },
                       [recorder, logs = std::move(older_logs)](Anchor* anchor) -> absl::Status {
                         return anchor->RecordFiles(recorder.get(), logs.get());
                       });
  const MutexLock lock(&mutex_);
  writer_.swap(writer);
  return absl::OkStatus();
}

void FollowedIndex::LetGoOfDirectory() {
  const std::shared_ptr<IndexWriter> open = writer();
  if (open != nullptr) open->LetGoOfDirectory();
}

absl::Duration FollowedIndex::NoteLoss(absl::Time now, absl::Duration first,
                                       absl::Duration longest) {
  const MutexLock lock(&mutex_);
  lost_wait_ =
      now - lost_at_ > longest ? absl::ZeroDuration() : std::clamp(2 * lost_wait_, first, longest);
  lost_at_ = now;
  return lost_wait_;
}

void FollowedIndex::NoteStore(const absl::Status& status, absl::Duration duration) {
  bool again = false;
  {
    const MutexLock lock(&mutex_);
    if (status.ok()) {
      ++stores_;
    } else if (!absl::IsCancelled(status)) {
      ++failed_stores_;
    }
    again = store_status_ == status;
    store_status_ = status;
  }
  if (!status.ok() && !again) LogFailure("its changes could not be stored", status);
  if (!log_->has_listeners()) return;
  Guarded("reporting a flush", [&] {
    log_->ReportFlush({name_, spec().column_family, status, duration});
    return absl::OkStatus();
  }).IgnoreError();
}

void FollowedIndex::NoteMerge(const absl::Status& status, absl::Duration duration) {
  bool again = false;
  {
    const MutexLock lock(&mutex_);
    if (status.ok()) {
      ++merges_;
    } else if (!absl::IsCancelled(status)) {
      ++failed_merges_;
    }
    again = merge_status_ == status;
    merge_status_ = status;
  }
  if (!status.ok() && !again) LogFailure("its compaction failed", status);
  if (!log_->has_listeners()) return;
  Guarded("reporting a compaction", [&] {
    log_->ReportCompaction({name_, spec().column_family, status, duration});
    return absl::OkStatus();
  }).IgnoreError();
}

void FollowedIndex::NoteFailedBuild() {
  const MutexLock lock(&mutex_);
  ++failed_builds_;
}

IndexInfo FollowedIndex::Info() const {
  IndexInfo info;
  info.spec = spec();
  info.directory = directory_;
  const MutexLock lock(&mutex_);
  info.builds = builds_;
  info.compactions = merges_;
  info.flushes = stores_;
  info.build_failures = failed_builds_;
  info.compaction_failures = failed_merges_;
  info.flush_failures = failed_stores_;
  info.state = state_;
  info.status = why_;
  info.flush_status = store_status_;
  info.compact_status = merge_status_;
  if (state_ == IndexState::kBuilding) info.progress = progress_;
  if (writer_ != nullptr) info.sequence = writer_->version()->sequence;
  return info;
}

}  // namespace cairn
