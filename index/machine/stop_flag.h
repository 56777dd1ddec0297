#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

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

// When a query must end before it is complete: QueryOptions::cancelled and deadline. Long work
// checks it once per block of work, on each thread.
struct StopCondition {
  const std::atomic<bool>* cancelled = nullptr;
  absl::Time deadline = absl::InfiniteFuture();

  // Returns the condition of QueryOptions or of other options with these two fields.
  template <typename Options>
  static StopCondition Of(const Options& options) {
    return {options.cancelled, options.deadline};
  }

  // Returns default options with this condition.
  template <typename Options>
  Options As() const {
    Options options;
    options.cancelled = cancelled;
    options.deadline = deadline;
    return options;
  }

  // Whether Check can return an error.
  bool may_stop() const { return cancelled != nullptr || deadline != absl::InfiniteFuture(); }
  // Returns Cancelled or DeadlineExceeded. Reads no clock if the deadline is infinite.
  absl::Status Check() const {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      return absl::CancelledError("the query was cancelled");
    }
    if (deadline != absl::InfiniteFuture() && absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the deadline of the query has passed");
    }
    return absl::OkStatus();
  }
};

// Rows of a result that are processed between two checks: some milliseconds of work.
inline constexpr size_t kStopRows = size_t{1} << 14;

// Calls body(first, count) for slices of [0, size) and checks `stop` before each. A single slice if
// nothing can stop it. Returns the first error.
template <typename Body>
absl::Status ForEachStoppable(size_t size, const StopCondition& stop, const Body& body) {
  if (!stop.may_stop()) return body(size_t{0}, size);
  size_t first = 0;
  do {
    if (absl::Status s = stop.Check(); !s.ok()) return s;
    const size_t count = std::min(kStopRows, size - first);
    if (absl::Status s = body(first, count); !s.ok()) return s;
    first += count;
  } while (first < size);
  return absl::OkStatus();
}

}  // namespace cairn
