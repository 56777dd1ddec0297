#include "engine/util/periodically.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cairn {
namespace {

// Longer than any process runs, and short enough to be added to the current time.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

}  // namespace

Periodically::Periodically(absl::Duration interval, std::function<void()> function)
    : Periodically(interval, interval, [function = std::move(function)] {
        function();
        return true;
      }) {}

Periodically::Periodically(absl::Duration interval, absl::Duration longest,
                           std::function<bool()> function) {
  if (interval <= absl::ZeroDuration()) return;
  interval = std::min(interval, kLongest);
  thread_ = std::thread([this, interval, longest = std::max(interval, longest),
                         function = std::move(function)] { Run(interval, longest, function); });
}

void Periodically::Run(absl::Duration interval, absl::Duration longest,
                       const std::function<bool()>& function) {
  absl::Duration wait = interval;
  MutexLock lock(&mutex_);
  while (!ended_) {
    const auto begin = std::chrono::steady_clock::now();
    const auto end = begin + absl::ToChronoNanoseconds(wait);
    is_slow_ = wait > interval;
    const bool was_slow = is_slow_;
    while (!ended_ && is_slow_ == was_slow && std::chrono::steady_clock::now() < end) {
      changed_.WaitUntil(&lock, end);
    }
    if (ended_) break;
    if (is_slow_ != was_slow) {
      wait = interval;
      continue;
    }
    is_slow_ = false;
    lock.Unlock();
    bool did_something = true;
    try {
      did_something = function();
    } catch (...) {  // the function may fail, for example without memory; it is called again
    }
    wait = did_something ? interval : std::min(2 * wait, longest);
    lock.Lock();
  }
}

void Periodically::EndSlowWait() {
  const MutexLock lock(&mutex_);
  is_slow_ = false;
  changed_.NotifyAll();
}

void Periodically::End() {
  {
    const MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn
