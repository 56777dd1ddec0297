#include "engine/live/event_log.h"

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

constexpr absl::Duration kWaitsInterval = absl::Seconds(10);

}  // namespace

void EventLog::Write(rocksdb::InfoLogLevel level, const std::string& line) const {
  if (log_ == nullptr) return;
  Guarded("writing the info log", [&] {
    rocksdb::Log(level, log_, "[cairn] %s", line.c_str());
    return absl::OkStatus();
  }).IgnoreError();
}

void EventLog::NoteWait(absl::Duration waited) {
  const absl::Time now = absl::Now();
  MutexLock lock(&mutex_);
  waited_ += waited;
  ++writes_;
  if (now < next_line_) return;
  next_line_ = now + kWaitsInterval;
  const absl::Duration sum = std::exchange(waited_, absl::ZeroDuration());
  const uint64_t writes = std::exchange(writes_, 0);
  lock.Unlock();
  Guarded("writing the info log", [&] {
    Write(rocksdb::InfoLogLevel::WARN_LEVEL,
          absl::StrFormat("%d writes waited %s in all, as indexes were behind "
                          "(IndexedDBOptions::max_backlog)",
                          writes, absl::FormatDuration(sum)));
    return absl::OkStatus();
  }).IgnoreError();
}

}  // namespace cairn
