#pragma once

#include <chrono>
#include <cstdint>

#include "index/machine/mutex.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Limits a background task's writes to a number of bytes per second. It is a token bucket with a
// capacity of a tenth of a second, full at the start. Thread-safe.
class RateLimiter {
 public:
  // 0: no limit.
  explicit RateLimiter(uint64_t bytes_per_second);

  // Waits until the bucket is no longer overdrawn, then takes `bytes` from it. That may be more
  // than it has; the next caller waits for the rest. Returns early if `stop` is set.
  void Take(uint64_t bytes, StopFlag* stop);

 private:
  using Clock = std::chrono::steady_clock;

  const double seconds_per_byte_;  // 0: no limit
  Mutex mutex_;
  // The time at which the bucket is empty and no longer overdrawn.
  Clock::time_point ready_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
