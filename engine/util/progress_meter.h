#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "cairn/progress.h"

namespace cairn {

// Counts a build's progress from many threads and reports it from one of its own, ten times a
// second and once at the end of each phase. Without a listener it starts no thread.
class ProgressMeter {
 public:
  explicit ProgressMeter(std::function<void(const Progress&)> listener);
  // Reports the last phase's end.
  ~ProgressMeter();
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // Ends the phase before, where there was one, and starts `phase` at 0 of `total`. One thread at a
  // time.
  void Start(Progress::Phase phase, uint64_t total);
  void Add(uint64_t done) { done_.fetch_add(done, std::memory_order_relaxed); }

 private:
  void Report();

  const std::function<void(const Progress&)> listener_;
  std::atomic<uint64_t> done_ = 0;
  std::mutex mutex_;  // guards what follows, and is held while the listener runs
  std::condition_variable wake_;
  bool started_ = false;
  bool stopping_ = false;
  Progress::Phase phase_ = Progress::Phase::kScan;
  uint64_t total_ = 0;
  std::thread reporter_;
};

}  // namespace cairn
