#include "engine/live/periodically.h"

#include <utility>

namespace cairn {

Periodically::Periodically(absl::Duration interval, std::function<void()> function) {
  if (interval <= absl::ZeroDuration()) return;
  thread_ = std::thread([this, interval, function = std::move(function)] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_) {
      ended_changed_.wait_for(lock, absl::ToChronoNanoseconds(interval));
      if (ended_) break;
      lock.unlock();
      function();
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
