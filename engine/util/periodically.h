#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "index/machine/mutex.h"

namespace cairn {

// Calls a function at an interval, on its own thread, until End. Never calls it if the interval is
// zero.
class Periodically {
 public:
  Periodically(absl::Duration interval, std::function<void()> function);
  // While the function returns false, since there was nothing to do, the time between calls doubles
  // up to `longest`, or stays at the interval if that is longer.
  Periodically(absl::Duration interval, absl::Duration longest, std::function<bool()> function);
  ~Periodically() { End(); }

  // Makes the current wait end after the interval, if the interval has been lengthened. Otherwise
  // costs one load.
  void Hasten() {
    if (is_slow_.load(std::memory_order_relaxed)) [[unlikely]] {
      EndSlowWait();
    }
  }
  // Returns once no call is in progress. There are no calls afterwards. Must not be called by two
  // threads at once.
  void End();

 private:
  void Run(absl::Duration interval, absl::Duration longest, const std::function<bool()>& function);
  void EndSlowWait();

  Mutex mutex_;
  CondVar changed_;  // ended_ or is_slow_
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_slow_{false};  // whether the current wait is longer than the interval
  std::thread thread_;
};

}  // namespace cairn
