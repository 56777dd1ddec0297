#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/route.h"
#include "engine/cost_model.h"
#include "engine/route.h"
#include "engine/route_counters.h"

namespace cairn {

// Chooses for each batch the route that is predicted to answer it first. For one batch that is also
// the route of highest throughput, so a limit of its response time never changes the choice: it
// decides how large a batch may grow before it comes here (Batcher), and Explain tells whether the
// prediction keeps it. After Kim et al., FAST (SIGMOD 2010), section 7.
//
// A batch that fails on a GPU, for want of memory or because the device is lost, is answered by the
// next best route of the CPU, from the beginning: answers are written over, never mixed. The device
// is then left alone, for good if it is lost, else for a time that doubles with each failure.
//
// Thread-safe.
class Router {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds, from any moment on; never goes back

  // A route, and its cost model; null where there is none, and such a route is taken only by name
  // or if no other is left. The first route takes what no model decides.
  struct Entry {
    Route route;
    std::unique_ptr<CostModel> costs;
  };

  // Requires one entry at least, one of them on the CPU and unbuffered.
  explicit Router(std::vector<Entry> entries, Clock clock = SteadyNanoseconds);

  // Answers a batch: calls `answer` with the best route, and again with others where that fails on
  // a GPU. It returns the bytes of the batch's keys and answers. InvalidArgument where
  // options.route names no route that takes such a batch; else errors are `answer`'s.
  absl::Status Answer(const BatchShape& shape, const QueryOptions& options,
                      absl::FunctionRef<absl::StatusOr<uint64_t>(const Route&)> answer) const;

  // SecondaryIndex's methods of these names.
  absl::Duration PredictedTime(Operation operation, size_t queries) const;
  size_t BestBatch(Operation operation) const;

  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<RouteStats> Stats() const;

  static int64_t SteadyNanoseconds();

 private:
  static constexpr size_t kNoEntry = SIZE_MAX;

  // The best of the entries that are not in the set `tried` (bits) and are not on a GPU if `cpu`.
  size_t Best(const BatchShape& shape, ResultOrder order, uint64_t tried, bool cpu) const;
  absl::StatusOr<size_t> Named(const BatchShape& shape, const QueryOptions& options) const;
  double Predict(size_t entry, const BatchShape& shape) const;
  // Whether GPUs are left alone at the moment.
  bool GpuIsOut(int64_t now) const { return now < gpu_out_until_.load(std::memory_order_relaxed); }
  void LeaveGpuAlone(const absl::Status& status, int64_t now) const;
  void FillExplain(const BatchShape& shape, const QueryOptions& options, size_t chosen,
                   int64_t now) const;

  std::vector<Entry> entries_;
  Clock clock_;
  std::unique_ptr<RouteCounters[]> counters_;  // one an entry
  mutable std::atomic<int64_t> gpu_out_until_{INT64_MIN};
  mutable std::atomic<int64_t> gpu_out_for_{0};  // nanoseconds, the last time
};

}  // namespace cairn
