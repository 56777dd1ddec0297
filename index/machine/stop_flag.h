#pragma once

#include <atomic>

namespace cairn {

// A caller's wish to stop a long operation, seen by all of its threads. Once seen it stays, also if
// the caller takes it back. Thread-safe.
class StopFlag {
 public:
  // `cancelled` may be null.
  explicit StopFlag(const std::atomic<bool>* cancelled) : cancelled_(cancelled) {}

  bool stopped() {
    if (stopped_.load(std::memory_order_relaxed)) return true;
    if (cancelled_ == nullptr || !cancelled_->load(std::memory_order_relaxed)) return false;
    Stop();
    return true;
  }
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  const std::atomic<bool>* cancelled_;
  std::atomic<bool> stopped_{false};
};

}  // namespace cairn
