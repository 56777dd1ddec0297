#include "engine/util/periodically.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

// Longer than any process lives, and short enough to be added to the time of day.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

}  // namespace

Periodically::Periodically(absl::Duration interval, std::function<void()> function) {
  if (interval <= absl::ZeroDuration()) return;
  thread_ = std::thread([this, interval, function = std::move(function)] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_) {
      ended_changed_.wait_for(lock, absl::ToChronoNanoseconds(std::min(interval, kLongest)));
      if (ended_) break;
      lock.unlock();
      try {
        function();
      } catch (...) {  // for want of memory, say: it is called again
      }
      lock.lock();
    }
  });
}

Periodically::~Periodically() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    ended_changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace cairn
