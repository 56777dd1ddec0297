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

// A time that is measured again and again, and what 99 of 100 measurements do not exceed: a
// quantile that moves up a little with each measurement above it, and down a 99th of that with each
// one below, so that how far above does not matter (frugal streaming: Ma, Muthukrishnan and
// Sandler, 2013). A thread that loses its processor is late by milliseconds, and tells nothing
// about the next time. Thread-safe; of simultaneous measurements some may be dropped.
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

// Which requests of a Batcher run next, and when: sizes and times of batches from the index's cost
// model, deadlines, and turns. Thread-safe.
class BatcherSchedule {
 public:
  BatcherSchedule(const BatchIndex* index, const BatcherOptions& options, BatcherQueue* queue);

  // Why a batch goes.
  enum class Reason : uint8_t { kFull, kDue, kIdle, kFlush };
  struct Choice {
    Operation operation;
    Reason reason;
    BatcherNanos earliest;  // deadline of its requests
  };
  // The operation whose turn it is: of those that have a best batch or whose earliest deadline does
  // not allow to wait longer, the one that has used the index least. None: nothing is ready, and
  // *next is when something will be, if nothing is added.
  std::optional<Choice> Ready(BatcherNanos now, BatcherNanos* next) const;
  // Of all that waits, ready or not; `reason` if it is not.
  std::optional<Choice> Any(BatcherNanos now, Reason reason) const;

  // The least size of a batch that goes without being due.
  size_t best(Operation operation) const { return Get(operation).best.load(); }
  // When somebody should look at a request with this deadline at the latest, whatever joins it.
  BatcherNanos LookAt(Operation operation, BatcherNanos deadline) const;
  // Beyond the index's own time; half of the response time at most, since a machine that is too
  // busy for more is not helped by smaller batches.
  BatcherNanos overhead() const {
    return std::min(max_overhead_, lateness_.Get() + handling_.Get());
  }

  // A batch has kept the index busy for so long: the operation's turns are counted by it. Asks the
  // cost model again from time to time.
  void Charge(Operation operation, BatcherNanos busy);
  // How much later than it wanted a thread woke up; what a batch took beside the index.
  void ObserveLateness(BatcherNanos late) { lateness_.Observe(late); }
  void ObserveHandling(BatcherNanos handling) { handling_.Observe(handling); }

 private:
  struct Lane {
    std::atomic<size_t> best{1};
    std::atomic<BatcherNanos> best_time{0};  // predicted
    std::atomic<BatcherNanos> used{0};       // of the index, by turns (Charge)
    std::atomic<uint32_t> batches{0};
  };
  const Lane& Get(Operation operation) const { return lanes_[static_cast<size_t>(operation)]; }

  void AskCostModel(Operation operation);
  BatcherNanos Predicted(Operation operation, size_t queries) const;
  std::optional<Choice> LeastUsed(absl::Span<const Choice> choices) const;

  const BatchIndex* const index_;
  BatcherQueue* const queue_;
  const size_t wanted_batch_;  // 0: the cost model's
  const BatcherNanos max_batch_time_;
  const BatcherNanos max_overhead_;
  std::array<Lane, kIndexOperations> lanes_;
  BatcherEstimate lateness_;
  BatcherEstimate handling_;
};

}  // namespace cairn
