#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "cairn/options.h"
#include "engine/util/progress_meter.h"
#include "engine/util/rate_limiter.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// State that the threads of one merge share: the write rate, the progress, and a flag that stops
// them. Thread-safe.
class MergePace {
 public:
  MergePace(uint64_t bytes_per_second, std::function<void(const Progress&)> on_progress,
            const std::atomic<bool>* cancelled)
      : limiter_(bytes_per_second), progress_(std::move(on_progress)), stop_(cancelled) {}

  void Start(uint64_t items) { progress_.Start(Progress::Phase::kWrite, items); }
  // Call before writing `items` rows or entries of `bytes` bytes in total. Cancelled: the merge has
  // been stopped.
  absl::Status Step(uint64_t items, uint64_t bytes) {
    limiter_.Take(bytes, &stop_);
    if (stopped()) return absl::CancelledError("the merge was cancelled");
    progress_.Add(items);
    return absl::OkStatus();
  }
  bool stopped() { return stop_.stopped(); }
  void Stop() { stop_.Stop(); }

 private:
  RateLimiter limiter_;
  ProgressMeter progress_;
  StopFlag stop_;
};

}  // namespace cairn
