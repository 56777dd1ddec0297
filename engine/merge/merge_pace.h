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

// What the threads of one merge share: how fast they may write, how far they are, and whether they
// are to stop. Thread-safe.
class MergePace {
 public:
  MergePace(uint64_t bytes_per_second, std::function<void(const Progress&)> on_progress,
            const std::atomic<bool>* cancelled)
      : limiter_(bytes_per_second), progress_(std::move(on_progress)), stop_(cancelled) {}

  void Start(uint64_t items) { progress_.Start(Progress::Phase::kWrite, items); }
  // To be called before `items` rows or entries of so many bytes are written. Cancelled once the
  // merge is to stop.
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
