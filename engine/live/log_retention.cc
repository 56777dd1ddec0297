#include "engine/live/log_retention.h"

#include "absl/time/clock.h"

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

LogRetention::LogRetention(rocksdb::DB* db)
    : db_(db), needed_(!Archives(db->GetDBOptions())), released_at_(absl::Now()) {
  if (needed_) pause_ = std::make_unique<FileDeletionPause>(db);
}

void LogRetention::Release(uint64_t log_number) {
  if (!needed_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Duration held = absl::Now() - released_at_;
  if (held < (log_number == log_number_ ? kLongestHold : kShortestHold)) return;
  pause_ = nullptr;  // before the next one begins
  pause_ = std::make_unique<FileDeletionPause>(db_);
  log_number_ = log_number;
  released_at_ = absl::Now();
}

}  // namespace cairn
