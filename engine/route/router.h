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

// The counters behind RouteStats. Thread-safe: threads count on stripes of their own, as far as
// these go, so that they do not wait for one another's cache lines.
class RouteCounters {
 public:
  void CountBatch(size_t queries, uint64_t bytes) {
    Stripe& stripe = OfThisThread();
    Add(&stripe.batches, 1);
    Add(&stripe.queries, queries);
    Add(&stripe.bytes, bytes);
  }
  // Counts the response time of one batch, which stands for `batches` of them.
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

// Chooses for each batch the route that is predicted to answer it first. For one batch that is also
// the route of highest throughput, so a limit of its response time (QueryOptions) never changes the
// choice: Explain tells whether the prediction keeps it. How large a batch may grow before it comes
// here is the Batcher's to decide. After Kim et al., FAST (SIGMOD 2010), section 7.
//
// A batch that fails on a GPU, for want of memory or because the device is lost, is answered by the
// next best route of the CPU, from the beginning: answers are written over, never mixed. The device
// is then left alone, for good if it is lost, else for a time that doubles with each failure.
//
// Thread-safe.
class Router {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds, from any moment on; never goes back

  // Requires one route at least and 64 at most, one of them on the CPU and unbuffered. Until there
  // are cost models the first route that takes a batch answers it.
  explicit Router(std::vector<Route> routes, Clock clock = SteadyNanoseconds);

  // Gives the routes, in their order, cost models of new trials; null for a route without one,
  // which is taken only by name or if no other is left. Thread-safe; batches under way finish with
  // what they began with.
  void SetCosts(std::vector<std::unique_ptr<CostModel>> costs);
  // Whether routes have become so much faster or slower that trials should be made again. Takes a
  // nanosecond: to be asked after each batch.
  bool TrialsAreDue() const { return trials_are_due_.load(std::memory_order_relaxed); }

  // Answers a batch by the best route, and by others where that fails on a GPU. `rows` is what the
  // batch is expected to find; Find and Scan. InvalidArgument where options.route names no route
  // that takes such a batch; else errors are the route's.
  absl::Status Execute(const Batch& batch, double rows = 0) const;

  // SecondaryIndex's methods of these names.
  absl::Duration PredictedTime(Operation operation, size_t queries) const;
  size_t BestBatch(Operation operation) const;

  std::vector<const Route*> routes() const;
  std::vector<RouteStats> Stats() const;

  static int64_t SteadyNanoseconds();

 private:
  using Costs = std::vector<std::unique_ptr<CostModel>>;  // one a route
  static constexpr size_t kNoRoute = SIZE_MAX;

  // The best of the routes that are not in the set `tried` (bits) and are not on a GPU if `cpu`.
  size_t Best(const BatchShape& shape, ResultOrder order, uint64_t tried, bool cpu) const;
  absl::StatusOr<size_t> Named(const Batch& batch) const;
  absl::StatusOr<size_t> Choose(const Batch& batch, const BatchShape& shape, bool gpu_is_out) const;
  const Costs& costs() const { return *costs_.load(std::memory_order_acquire); }
  double Predict(size_t route, const BatchShape& shape) const;
  void Observe(size_t route, const BatchShape& shape, int64_t nanoseconds) const;
  bool GpuHasFailed() const { return gpu_out_until_.load(std::memory_order_relaxed) != INT64_MIN; }
  // Whether GPUs are left alone at the moment.
  bool GpuIsOut(int64_t now) const { return now < gpu_out_until_.load(std::memory_order_relaxed); }
  void LeaveGpuAlone(const absl::Status& status, int64_t now) const;
  void FillExplain(const Batch& batch, const BatchShape& shape, size_t chosen,
                   bool gpu_is_out) const;

  const std::vector<Route> routes_;
  const Clock clock_;
  std::unique_ptr<RouteCounters[]> counters_;  // one a route

  std::atomic<const Costs*> costs_;  // the last of all_costs_, which batches may still use
  Mutex mutex_;
  std::vector<std::unique_ptr<const Costs>> all_costs_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> trials_{0};  // how many times they were made
  mutable std::atomic<bool> trials_are_due_{false};

  mutable std::atomic<int64_t> gpu_out_until_{INT64_MIN};
  mutable std::atomic<int64_t> gpu_out_for_{0};  // nanoseconds, the last time
};

}  // namespace cairn
