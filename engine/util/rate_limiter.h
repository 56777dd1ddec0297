#pragma once

#include <chrono>
#include <cstdint>

#include "index/machine/mutex.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Holds a background task's writes to so many bytes a second: a token bucket that holds those of a
// tenth of a second, full at first. Thread-safe.
class RateLimiter {
 public:
  // 0: no limit.
  explicit RateLimiter(uint64_t bytes_per_second);

  // Waits until the bucket is no longer overdrawn, then takes `bytes` from it, which may be more
  // than it has: the next caller waits for these. Returns early once `stop` says so.
  void Take(uint64_t bytes, StopFlag* stop);

 private:
  using Clock = std::chrono::steady_clock;

  const double seconds_per_byte_;  // 0: no limit
  Mutex mutex_;
  // When the bucket is empty and no longer overdrawn.
  Clock::time_point ready_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
