#include "engine/live/log_retention.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "engine/log/wal_links.h"
#include "rocksdb/transaction_log.h"

namespace cairn {
namespace {

// Each time, RocksDB lists its directories, which takes a millisecond per thousand files.
constexpr absl::Duration kShortestHold = absl::Seconds(1);
// For files that compactions make obsolete while there are no writes.
constexpr absl::Duration kLongestHold = absl::Seconds(30);

bool Archives(const rocksdb::DBOptions& options) {
  return options.WAL_ttl_seconds > 0 || options.WAL_size_limit_MB > 0;
}

}  // namespace

LogRetention::LogRetention(rocksdb::DB* db, uint64_t max_kept)
    : db_(db), max_kept_(max_kept), released_at_(absl::Now()) {
  if (!Archives(db->GetDBOptions())) pause_ = std::make_unique<FileDeletionPause>(db);
  // Left over from killed processes.
  if (HasWalLinks(db) && FileDeletionPause(db).pauses()) RemoveAllWalLinks(db);
  if (pause_ == nullptr) return;
  released_bytes_ = LogBytes();
}

LogRetention::Hold::Hold(LogRetention* retention, uint64_t max_kept)
    : retention_(retention), max_kept_(max_kept) {
  const MutexLock lock(&retention_->mutex_);
  if (retention_->closed_) return;
  retention_->holds_.push_back(this);
  pause_ = std::make_unique<FileDeletionPause>(retention_->db_);
  first_bytes_ = retention_->LogBytes();
}

LogRetention::Hold::~Hold() {
  const MutexLock lock(&retention_->mutex_);
  std::erase(retention_->holds_, this);
  pause_ = nullptr;
}

uint64_t LogRetention::LogBytes() const {
  rocksdb::VectorLogPtr files;
  if (!db_->GetSortedWalFiles(files).ok()) return 0;
  uint64_t bytes = 0;
  for (const auto& file : files) bytes += file->SizeFileBytes();
  return bytes;
}

void LogRetention::Release(uint64_t log_number) {
  const MutexLock lock(&mutex_);
  if (pause_ == nullptr) return;
  const absl::Duration held = absl::Now() - released_at_;
  if (held < (log_number == log_number_ ? kLongestHold : kShortestHold)) return;
  const bool reads = log_number != 0;
  pause_->LetPass([&] {
    if (reads) LinkWalFiles(db_, log_number);
  });
  // A hold may need files that the followers have read.
  if (holds_.empty()) RemoveWalLinks(db_, reads ? log_number : UINT64_MAX);
  log_number_ = log_number;
  released_at_ = absl::Now();
  released_bytes_ = LogBytes();
}

bool LogRetention::CheckBounds() {
  const MutexLock lock(&mutex_);
  if (closed_ || (pause_ == nullptr && holds_.empty())) return false;
  const uint64_t bytes = LogBytes();
  for (Hold* hold : holds_) {
    if (hold->max_kept_ == kNoBound || bytes <= hold->first_bytes_ + hold->max_kept_) continue;
    hold->exceeded_ = true;
    hold->pause_ = nullptr;
  }
  if (pause_ == nullptr) return false;
  return absl::Now() - released_at_ >= kLongestHold || bytes > released_bytes_ + max_kept_;
}

void LogRetention::Close() {
  const MutexLock lock(&mutex_);
  closed_ = true;
  if (pause_ != nullptr) RemoveWalLinks(db_, UINT64_MAX);
  pause_ = nullptr;
  for (Hold* hold : holds_) hold->pause_ = nullptr;
}

}  // namespace cairn
