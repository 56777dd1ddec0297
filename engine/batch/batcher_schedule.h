#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "cairn/batch_index.h"
#include "cairn/batcher.h"
#include "engine/batch/batcher_queue.h"

namespace cairn {

// Estimates a time that is measured repeatedly: the value that 99 of 100 measurements do not
// exceed. Each measurement above the estimate moves it up a little; each one below moves it down by
// 1/99 of that. So it does not matter how far above a measurement is (frugal streaming: Ma,
// Muthukrishnan and Sandler, 2013). That is intended: a thread that loses its processor is
// milliseconds late, which does not predict the next time. Thread-safe; some of several
// simultaneous measurements may be dropped.
class BatcherEstimate {
 public:
  explicit BatcherEstimate(BatcherNanos first) : quantile_(static_cast<double>(first)) {}
  void Observe(BatcherNanos measured);
  BatcherNanos Get() const {
    return static_cast<BatcherNanos>(quantile_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<double> quantile_;
};

// Decides which requests of a Batcher run next, and when. It uses the index's cost model for sizes
// and times of batches, the deadlines, and the time that each operation has used. Thread-safe.
class BatcherSchedule {
 public:
  BatcherSchedule(const BatchIndex* index, const BatcherOptions& options, BatcherQueue* queue);

  // The reason to run a batch.
  enum class Reason : uint8_t { kFull, kDue, kIdle, kFlush };
  struct Choice {
    Operation operation;
    Reason reason;
    BatcherNanos earliest;  // the earliest deadline of its requests
  };
  // Returns the next operation. An operation is ready if it has a best batch, or if its earliest
  // deadline does not allow it to wait longer. The ready operation that has used the index least is
  // next. If none is ready, returns nullopt and sets *next to the time at which one will be ready
  // if no query is added.
  std::optional<Choice> Ready(BatcherNanos now, BatcherNanos* next) const;
  // The same among all waiting operations, ready or not. The reason is `reason` if it is not ready.
  std::optional<Choice> Any(BatcherNanos now, Reason reason) const;

  // The minimum size of a batch that runs before it is due.
  size_t best(Operation operation) const { return Get(operation).best.load(); }
  // Returns the latest time at which a thread must check a request with this deadline, whatever
  // joins it.
  BatcherNanos LookAt(Operation operation, BatcherNanos deadline) const;
  // The time of a batch in addition to the index's own. It is at most half of the response time:
  // smaller batches do not help a machine that is too busy for that.
  BatcherNanos overhead() const {
    return std::min(max_overhead_, lateness_.Get() + handling_.Get());
  }

  // Records that a batch has kept the index busy for this time, which counts for the operation's
  // next turn. Queries the cost model again from time to time.
  void Charge(Operation operation, BatcherNanos busy);
  // Record how late a thread woke up, and the time of a batch in addition to the index's.
  void ObserveLateness(BatcherNanos late) { lateness_.Observe(late); }
  void ObserveHandling(BatcherNanos handling) { handling_.Observe(handling); }

 private:
  struct Lane {
    std::atomic<size_t> best{1};
    std::atomic<BatcherNanos> best_time{0};  // predicted
    std::atomic<BatcherNanos> used{0};       // index time, for fairness (Charge)
    std::atomic<uint32_t> batches{0};
  };
  const Lane& Get(Operation operation) const { return lanes_[static_cast<size_t>(operation)]; }

  void AskCostModel(Operation operation);
  BatcherNanos Predicted(Operation operation, size_t queries) const;
  std::optional<Choice> LeastUsed(absl::Span<const Choice> choices) const;

  const BatchIndex* const index_;
  BatcherQueue* const queue_;
  const size_t wanted_batch_;  // 0: the cost model decides
  const BatcherNanos max_batch_time_;
  const BatcherNanos max_overhead_;
  std::array<Lane, kIndexOperations> lanes_;
  BatcherEstimate lateness_;
  BatcherEstimate handling_;
};

}  // namespace cairn
