#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace cairn {

// A caller's request to stop a long operation, for all of its threads. Once seen it remains set,
// even if the caller resets it. Thread-safe.
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

// Returns Cancelled if `cancelled`, which may be null, is set. For queries on one thread, which
// check it once per block of work.
inline absl::Status CheckNotCancelled(const std::atomic<bool>* cancelled) {
  if (cancelled == nullptr || !cancelled->load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::CancelledError("the query was cancelled");
}

}  // namespace cairn
