#include "engine/live/event_log.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "index/machine/guard.h"

namespace cairn {
namespace {

constexpr absl::Duration kWaitsInterval = absl::Seconds(10);

}  // namespace

absl::Status ShownError(rocksdb::DB* db, const absl::Status& error) {
  const bool of_rows = absl::IsInvalidArgument(error) || absl::IsAlreadyExists(error);
  if (!of_rows || db->GetDBOptions().allow_data_in_errors) return error;
  if (absl::IsAlreadyExists(error)) {
    return absl::AlreadyExistsError(
        "the index is unique, but two rows have the same key; DBOptions::allow_data_in_errors "
        "shows them");
  }
  return absl::InvalidArgumentError(
      "a row does not match the index's spec; DBOptions::allow_data_in_errors shows which one and "
      "why");
}

EventLog::EventLog(std::shared_ptr<rocksdb::Logger> log, Listeners listeners)
    : log_(std::move(log)), listeners_(std::move(listeners)) {
  if (has_listeners()) thread_ = std::thread([this] { CallListeners(); });
}

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
  backlog_.wait_time += waited;
  ++backlog_.waits;
  if (now < next_line_) return;
  next_line_ = now + kWaitsInterval;
  const BacklogStats before = std::exchange(logged_, backlog_);
  const absl::Duration sum = logged_.wait_time - before.wait_time;
  const uint64_t writes = logged_.waits - before.waits;
  lock.Unlock();
  Guarded("writing the info log", [&] {
    Write(rocksdb::InfoLogLevel::WARN_LEVEL,
          absl::StrFormat("%d writes waited for indexes, for a total of %s "
                          "(IndexedDBOptions::max_backlog)",
                          writes, absl::FormatDuration(sum)));
    return absl::OkStatus();
  }).IgnoreError();
}

void EventLog::NoteRefusal() {
  const MutexLock lock(&mutex_);
  ++backlog_.refusals;
}

BacklogStats EventLog::backlog() const {
  const MutexLock lock(&mutex_);
  return backlog_;
}

void EventLog::Enqueue(Call call) {
  Guarded("reporting an event", [&] {
    const MutexLock lock(&calls_mutex_);
    if (!stopped_) calls_.push_back(std::move(call));
    calls_changed_.NotifyAll();
    return absl::OkStatus();
  }).IgnoreError();
}

void EventLog::CallListeners() {
  MutexLock lock(&calls_mutex_);
  while (true) {
    while (calls_.empty() && !stopped_) calls_changed_.Wait(&lock);
    if (calls_.empty()) return;
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.Unlock();
    for (const auto& listener : listeners_) {
      Guarded("calling a listener", [&] {
        call(listener.get());
        return absl::OkStatus();
      }).IgnoreError();
    }
    lock.Lock();
  }
}

void EventLog::Stop(bool deliver) {
  const MutexLock ending(&thread_mutex_);
  {
    const MutexLock lock(&calls_mutex_);
    stopped_ = true;
    if (!deliver) calls_.clear();
    calls_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn
