#include "engine/util/rate_limiter.h"

#include <algorithm>
#include <thread>

namespace cairn {
namespace {

constexpr std::chrono::milliseconds kBucket(100);
// Time between two reads of the stop flag.
constexpr std::chrono::milliseconds kNap(20);

}  // namespace

RateLimiter::RateLimiter(uint64_t bytes_per_second)
    : seconds_per_byte_(bytes_per_second == 0 ? 0 : 1 / static_cast<double>(bytes_per_second)),
      ready_(Clock::now() - kBucket) {}

void RateLimiter::Take(uint64_t bytes, StopFlag* stop) {
  if (seconds_per_byte_ == 0) return;
  const auto cost = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) * seconds_per_byte_));
  Clock::time_point ready;
  {
    const MutexLock lock(&mutex_);
    ready = ready_ = std::max(ready_, Clock::now() - kBucket);
    ready_ += cost;
  }
  for (auto now = Clock::now(); now < ready && !stop->stopped(); now = Clock::now()) {
    std::this_thread::sleep_for(std::min<Clock::duration>(ready - now, kNap));
  }
}

}  // namespace cairn
