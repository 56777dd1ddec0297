#include "engine/batch/batcher_schedule.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace cairn {
namespace {

// Initial estimates of a batch's time in addition to the index's time, until it has been measured.
// On an idle machine a sleeping thread wakes up 50 to 100 us late.
constexpr BatcherNanos kFirstLateness = 60'000;
constexpr BatcherNanos kFirstHandling = 5'000;

// The relative step by which an estimate moves.
constexpr double kStep = 0.1;
constexpr double kMinEstimate = 100;  // ns

// The cost model is queried again after this many batches of an operation, since it learns while
// the index is used.
constexpr uint32_t kBatchesPerQuestion = 64;

// Minimum capacity of a block, even if a best batch is smaller, unless that many queries take too
// long. It prevents a flood of single queries from filling one block each.
constexpr size_t kMinBlock = 64;
// A batch is large enough if a larger one would gain at most 10% (BatchIndex::BestBatch).
constexpr double kShareOfBest = 0.9;
// The fixed cost of a batch in addition to the index's time: scheduling, locks, the clock, the
// router, cache misses. The cost model without it chooses batches of 64 queries. With it, batches
// have 256, and a query takes 10% less processor time
// (Batcher/u32/n:24/threads:64/batcher_group:256).
constexpr BatcherNanos kBatchNanos = 1500;
// Also used if a prediction is infinite.
constexpr absl::Duration kLongestPrediction = absl::Hours(1);
// Used if the index has no cost model.
constexpr size_t kBatchWithoutModel = 1024;

// An operation that used the index less than others catches up, but by at most this many of its
// longest batches. An operation that was unused for an hour does not get the next hour.
constexpr BatcherNanos kMaxCredit = 4;

Operation OperationAt(size_t i) {
  return static_cast<Operation>(i);
}

BatcherNanos MaxBatchTime(const BatcherOptions& options) {
  const absl::Duration time = options.max_batch_time > absl::ZeroDuration()
                                  ? options.max_batch_time
                                  : options.default_deadline / 16;
  return std::max<BatcherNanos>(1, absl::ToInt64Nanoseconds(time));
}

}  // namespace

void BatcherEstimate::Observe(BatcherNanos measured) {
  const double quantile = quantile_.load(std::memory_order_relaxed);
  const bool above = static_cast<double>(measured) > quantile;
  quantile_.store(std::max(kMinEstimate, quantile * (above ? 1 + kStep : 1 - kStep / 99)),
                  std::memory_order_relaxed);
}

BatcherSchedule::BatcherSchedule(const BatchIndex* index, const BatcherOptions& options,
                                 BatcherQueue* queue)
    : index_(index),
      queue_(queue),
      wanted_batch_(options.best_batch),
      max_batch_time_(MaxBatchTime(options)),
      max_overhead_(absl::ToInt64Nanoseconds(options.default_deadline) / 2),
      lateness_(options.threads > 0 ? kFirstLateness : kMinEstimate),
      handling_(options.clock == nullptr ? kFirstHandling : kMinEstimate) {
  for (size_t i = 0; i < kIndexOperations; ++i) AskCostModel(OperationAt(i));
}

BatcherNanos BatcherSchedule::Predicted(Operation operation, size_t queries) const {
  return absl::ToInt64Nanoseconds(
      std::min(index_->PredictedTime(operation, queries), kLongestPrediction));
}

void BatcherSchedule::AskCostModel(Operation operation) {
  const bool has_model = Predicted(operation, 1) > 0;
  const size_t wanted = wanted_batch_ != 0 ? wanted_batch_
                        : has_model        ? index_->BestBatch(operation)
                                           : kBatchWithoutModel;
  // The largest power of two that does not take too long, up to the size needed.
  size_t in_time = 1;
  while (in_time < std::max(wanted, kMinBlock) &&
         Predicted(operation, 2 * in_time) <= max_batch_time_) {
    in_time *= 2;
  }
  const size_t largest = std::min(in_time, wanted);

  // The smallest batch that is nearly as good, including the batcher's own cost.
  size_t best = largest;
  if (wanted_batch_ == 0 && has_model) {
    const auto time_per_query = [&](size_t queries) {
      return static_cast<double>(Predicted(operation, queries) + kBatchNanos) /
             static_cast<double>(queries);
    };
    double least = time_per_query(largest);
    while (best > 1 && time_per_query(best / 2) * kShareOfBest <= least) {
      best /= 2;
      least = std::min(least, time_per_query(best));
    }
  }
  Lane& lane = lanes_[static_cast<size_t>(operation)];
  lane.best.store(best);
  lane.best_time.store(Predicted(operation, best));
  queue_->SetBatchSize(operation, best, std::max(best, std::min(kMinBlock, in_time)));
}

BatcherNanos BatcherSchedule::LookAt(Operation operation, BatcherNanos deadline) const {
  return deadline - Get(operation).best_time.load(std::memory_order_relaxed) - overhead();
}

std::optional<BatcherSchedule::Choice> BatcherSchedule::Ready(BatcherNanos now,
                                                              BatcherNanos* next) const {
  *next = kNever;
  absl::InlinedVector<Choice, kIndexOperations> ready;
  for (size_t i = 0; i < kIndexOperations; ++i) {
    const Operation operation = OperationAt(i);
    const BatcherNanos earliest = queue_->earliest(operation);
    if (earliest == kNever) continue;
    const size_t waiting = queue_->waiting(operation);
    const size_t best = Get(operation).best.load(std::memory_order_relaxed);
    if (waiting >= best) {
      ready.push_back({operation, Reason::kFull, earliest});
      continue;
    }
    // First the time at which a best batch would be due. If that has passed, the time for the
    // queries that are waiting.
    BatcherNanos due = LookAt(operation, earliest);
    if (due <= now) due = earliest - Predicted(operation, waiting) - overhead();
    if (due <= now) {
      ready.push_back({operation, Reason::kDue, earliest});
    } else {
      *next = std::min(*next, due);
    }
  }
  return LeastUsed(ready);
}

std::optional<BatcherSchedule::Choice> BatcherSchedule::Any(BatcherNanos now, Reason reason) const {
  BatcherNanos next;
  if (std::optional<Choice> ready = Ready(now, &next)) return ready;
  absl::InlinedVector<Choice, kIndexOperations> waiting;
  for (size_t i = 0; i < kIndexOperations; ++i) {
    const BatcherNanos earliest = queue_->earliest(OperationAt(i));
    if (earliest != kNever) waiting.push_back({OperationAt(i), reason, earliest});
  }
  return LeastUsed(waiting);
}

std::optional<BatcherSchedule::Choice> BatcherSchedule::LeastUsed(
    absl::Span<const Choice> choices) const {
  const auto used = [this](const Choice& choice) { return Get(choice.operation).used.load(); };
  const auto least =
      std::min_element(choices.begin(), choices.end(),
                       [&](const Choice& a, const Choice& b) { return used(a) < used(b); });
  return least == choices.end() ? std::nullopt : std::make_optional(*least);
}

void BatcherSchedule::Charge(Operation operation, BatcherNanos busy) {
  Lane& lane = lanes_[static_cast<size_t>(operation)];
  const BatcherNanos used = lane.used.fetch_add(busy) + busy;
  const BatcherNanos least = used - kMaxCredit * max_batch_time_;
  for (Lane& other : lanes_) {
    BatcherNanos theirs = other.used.load(std::memory_order_relaxed);
    while (theirs < least && !other.used.compare_exchange_weak(theirs, least)) {
    }
  }
  if (lane.batches.fetch_add(1) % kBatchesPerQuestion == kBatchesPerQuestion - 1) {
    AskCostModel(operation);
  }
}

}  // namespace cairn
