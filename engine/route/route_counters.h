#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "cairn/query.h"

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

}  // namespace cairn
