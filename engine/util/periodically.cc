#include "engine/util/periodically.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cairn {
namespace {

// Longer than any process runs, and short enough to be added to the current time.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

}  // namespace

Periodically::Periodically(absl::Duration interval, std::function<void()> function) {
  if (interval <= absl::ZeroDuration()) return;
  thread_ = std::thread([this, interval, function = std::move(function)] {
    MutexLock lock(&mutex_);
    while (!ended_) {
      ended_changed_.WaitUntil(&lock, std::chrono::steady_clock::now() +
                                          absl::ToChronoNanoseconds(std::min(interval, kLongest)));
      if (ended_) break;
      lock.Unlock();
      try {
        function();
      } catch (...) {  // the function may fail, for example without memory; it is called again
      }
      lock.Lock();
    }
  });
}

Periodically::~Periodically() {
  {
    const MutexLock lock(&mutex_);
    ended_ = true;
    ended_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn
