#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/query.h"
#include "engine/route/cost_model.h"
#include "engine/route/route.h"
#include "index/machine/mutex.h"

namespace cairn {

// The counters of RouteStats. Thread-safe. Up to kStripes threads count on stripes of their own, so
// that they do not wait for each other's cache lines.
class RouteCounters {
 public:
  void CountBatch(size_t queries, uint64_t bytes) {
    Stripe& stripe = OfThisThread();
    Add(&stripe.batches, 1);
    Add(&stripe.queries, queries);
    Add(&stripe.bytes, bytes);
  }
  // Counts the response time of one batch that represents `batches` batches.
  void CountTime(int64_t nanoseconds, uint64_t batches) {
    Stripe& stripe = OfThisThread();
    Add(&stripe.busy_ns, static_cast<uint64_t>(nanoseconds) * batches);
    Add(&stripe.response_times[Bucket(nanoseconds)], batches);
  }
  void CountFailure() { Add(&OfThisThread().failures, 1); }

  // Adds the counts so far to *stats.
  void AddTo(RouteStats* stats) const {
    for (const Stripe& stripe : stripes_) {
      stats->batches += stripe.batches.load(std::memory_order_relaxed);
      stats->queries += stripe.queries.load(std::memory_order_relaxed);
      stats->bytes += stripe.bytes.load(std::memory_order_relaxed);
      stats->failures += stripe.failures.load(std::memory_order_relaxed);
      stats->busy += absl::Nanoseconds(stripe.busy_ns.load(std::memory_order_relaxed));
      for (size_t b = 0; b < RouteStats::kBuckets; ++b) {
        stats->response_times[b] += stripe.response_times[b].load(std::memory_order_relaxed);
      }
    }
  }

  static size_t Bucket(int64_t nanoseconds) {
    const uint64_t microseconds = static_cast<uint64_t>(std::max<int64_t>(nanoseconds, 0)) / 1000;
    return std::min<size_t>(std::bit_width(microseconds), RouteStats::kBuckets - 1);
  }

 private:
  using Counter = std::atomic<uint64_t>;
  struct alignas(64) Stripe {
    Counter batches{0}, queries{0}, bytes{0}, failures{0}, busy_ns{0};
    std::array<Counter, RouteStats::kBuckets> response_times = {};
  };
  static constexpr size_t kStripes = 8;

  static void Add(Counter* counter, uint64_t count) {
    counter->fetch_add(count, std::memory_order_relaxed);
  }
  Stripe& OfThisThread() {
    static std::atomic<size_t> threads{0};
    thread_local const size_t stripe = threads.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return stripes_[stripe];
  }

  std::array<Stripe, kStripes> stripes_;
};

// Chooses for each batch the route with the lowest predicted time. For a single batch that is also
// the route of highest throughput. So a latency target (QueryOptions) never changes the choice;
// Explain reports whether it is predicted to be met. The Batcher decides how large a batch may grow
// before it comes here. After Kim et al., FAST (SIGMOD 2010), section 7.
//
// If a batch fails on a GPU, because memory runs out or the device is lost, the next best route of
// the CPU answers it from the start. Its answers overwrite those of the GPU, and are never mixed
// with them. The device is then not used: never again if it is lost, otherwise for a pause that
// doubles with each failure.
//
// Thread-safe.
class Router {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds from any epoch; never goes back

  // Requires 1 to 64 routes, one of them unbuffered and on the CPU. Until there are cost models,
  // the first route that supports a batch answers it.
  explicit Router(std::vector<Route> routes, Clock clock = SteadyNanoseconds);

  // Sets the cost models of the routes, in order, from new trials. A route with a null model is
  // used only by name, or if no other route is left. Thread-safe; running batches finish with the
  // old models.
  void SetCosts(std::vector<std::unique_ptr<CostModel>> costs);
  // Returns whether routes have become so much faster or slower that trials should be repeated.
  // Takes a nanosecond, so it can be called after each batch.
  bool TrialsAreDue() const { return trials_are_due_.load(std::memory_order_relaxed); }

  // Answers a batch on the best route, and on others if that fails on a GPU. `rows` is the expected
  // number of rows; for Find and Scan. InvalidArgument: options.route does not name a route that
  // supports such a batch. Otherwise the errors are the route's.
  absl::Status Execute(const Batch& batch, double rows = 0) const;

  // Implement the methods of SecondaryIndex with these names.
  absl::Duration PredictedTime(Operation operation, size_t queries) const;
  size_t BestBatch(Operation operation) const;

  std::vector<const Route*> routes() const;
  std::vector<RouteStats> Stats() const;

  static int64_t SteadyNanoseconds();

 private:
  using Costs = std::vector<std::unique_ptr<CostModel>>;  // one per route
  static constexpr size_t kNoRoute = SIZE_MAX;

  // Returns the best of the routes that are not in the set `tried` (bits) and, if `cpu`, not on a
  // GPU.
  size_t Best(const BatchShape& shape, ResultOrder order, uint64_t tried, bool cpu) const;
  absl::StatusOr<size_t> Named(const Batch& batch) const;
  absl::StatusOr<size_t> Choose(const Batch& batch, const BatchShape& shape, bool gpu_is_out) const;
  const Costs& costs() const { return *costs_.load(std::memory_order_acquire); }
  double Predict(size_t route, const BatchShape& shape) const;
  void Observe(size_t route, const BatchShape& shape, int64_t nanoseconds) const;
  bool GpuHasFailed() const { return gpu_out_until_.load(std::memory_order_relaxed) != INT64_MIN; }
  // Returns whether GPUs are currently not used.
  bool GpuIsOut(int64_t now) const { return now < gpu_out_until_.load(std::memory_order_relaxed); }
  void LeaveGpuAlone(const absl::Status& status, int64_t now) const;
  void FillExplain(const Batch& batch, const BatchShape& shape, size_t chosen,
                   bool gpu_is_out) const;

  const std::vector<Route> routes_;
  const Clock clock_;
  std::unique_ptr<RouteCounters[]> counters_;  // one per route

  std::atomic<const Costs*> costs_;  // the last of all_costs_; running batches may still use
                                     // earlier ones
  Mutex mutex_;
  std::vector<std::unique_ptr<const Costs>> all_costs_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> trials_{0};  // number of repetitions
  mutable std::atomic<bool> trials_are_due_{false};

  mutable std::atomic<int64_t> gpu_out_until_{INT64_MIN};
  mutable std::atomic<int64_t> gpu_out_for_{0};  // the last pause in nanoseconds
};

}  // namespace cairn
