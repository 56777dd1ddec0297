#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "cairn/options.h"
#include "index/machine/mutex.h"

namespace cairn {

// Counts a build's progress from many threads. Reports it from its own thread, ten times a second,
// and at the end of each phase, whose total is then the number done. Without a listener it starts
// no thread.
class ProgressMeter {
 public:
  explicit ProgressMeter(std::function<void(const Progress&)> listener);
  // Reports the end of the last phase.
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // Ends the previous phase, if any, and starts `phase` at 0 of `total`, which may be an estimate.
  // Not thread-safe.
  void Start(Progress::Phase phase, uint64_t total);
  void Add(uint64_t done) { done_.fetch_add(done, std::memory_order_relaxed); }

 private:
  void Report() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(const Progress&)> listener_;
  std::atomic<uint64_t> done_ = 0;
  Mutex mutex_;  // also held while the listener runs
  CondVar wake_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Progress::Phase phase_ ABSL_GUARDED_BY(mutex_) = Progress::Phase::kScan;
  uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread reporter_;
};

}  // namespace cairn
