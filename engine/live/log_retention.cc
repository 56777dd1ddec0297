#include "engine/live/log_retention.h"

#include "absl/time/clock.h"
#include "rocksdb/transaction_log.h"

namespace cairn {
namespace {

// RocksDB lists its directories each time, which takes a millisecond for a thousand files.
constexpr absl::Duration kShortestHold = absl::Seconds(1);
// For files that compactions leave behind while nothing is written.
constexpr absl::Duration kLongestHold = absl::Seconds(30);

bool Archives(const rocksdb::DBOptions& options) {
  return options.WAL_ttl_seconds > 0 || options.WAL_size_limit_MB > 0;
}

}  // namespace

LogRetention::LogRetention(rocksdb::DB* db, uint64_t most_kept)
    : db_(db),
      most_kept_(most_kept),
      needed_(!Archives(db->GetDBOptions())),
      released_at_(absl::Now()) {
  if (!needed_) return;
  pause_ = std::make_unique<FileDeletionPause>(db);
  released_bytes_ = LogBytes();
}

LogRetention::Hold::Hold(LogRetention* retention) : retention_(retention) {
  const MutexLock lock(&retention_->mutex_);
  if (!retention_->needed_ || retention_->holds_++ > 0) return;
  retention_->build_pause_ = std::make_unique<FileDeletionPause>(retention_->db_);
  retention_->held_bytes_ = retention_->LogBytes();
}

LogRetention::Hold::~Hold() {
  const MutexLock lock(&retention_->mutex_);
  if (retention_->needed_ && --retention_->holds_ == 0) retention_->build_pause_ = nullptr;
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
  if (!needed_) return;
  const absl::Duration held = absl::Now() - released_at_;
  if (held < (log_number == log_number_ ? kLongestHold : kShortestHold)) return;
  pause_->LetPass();
  log_number_ = log_number;
  released_at_ = absl::Now();
  released_bytes_ = LogBytes();
}

bool LogRetention::IsOverdue() {
  const MutexLock lock(&mutex_);
  if (!needed_) return false;
  const uint64_t bytes = LogBytes();
  if (build_pause_ != nullptr && bytes > held_bytes_ + most_kept_) build_pause_ = nullptr;
  return absl::Now() - released_at_ >= kLongestHold || bytes > released_bytes_ + most_kept_;
}

void LogRetention::Close() {
  const MutexLock lock(&mutex_);
  needed_ = false;
  pause_ = nullptr;
  build_pause_ = nullptr;
}

}  // namespace cairn
