#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/route/cost_model.h"

// Extrapolates from the times of a few batches to those of all.
namespace cairn {

// The result of a trial: the time of a batch of `queries` queries, a power of two.
struct CostTrial {
  size_t queries = 0;
  double ns = 0;
};

// Returns the number of queries that the busiest thread answers in a batch.
double QueriesOfOneThread(size_t queries, const Parallelism& parallelism);

// How spreading a batch over threads changes its time: threads must be woken, and they share one
// memory. One part costs nothing. Between two parts and max_parts the cost is proportional to their
// number.
struct FanOut {
  double two_ns = 0;    // to wake threads for two parts
  double max_ns = 0;    // to wake threads for max_parts
  double slowdown = 1;  // of max_parts that work concurrently, relative to one
  size_t max_parts = 2;

  // Returns the time of a batch. `part_ns` is the time of the busiest thread's part without other
  // threads.
  double Time(size_t queries, double part_ns, const Parallelism& parallelism) const;
};

// Fits trials with min_slice queries per thread on one thread, on two and on all, and another on
// all with twice the queries. If there are only two threads, the trial on two is also the one on
// all. Returns no cost for fewer than three trials.
FanOut FitFanOut(absl::Span<const CostTrial> trials, const Parallelism& parallelism);

// Fits the curve of a route that spreads a batch over threads as `parallelism` describes. The
// trials have ascending sizes. Requires at least one trial, and positive times.
//
// Time is assumed to be linear in the queries of the busiest thread, between two trials and after
// the last. After the last, the marginal cost is that of the last two trials, but at least 1/16 of
// a query's mean cost. For a single trial, all cost is assumed to be per query. A trial that took
// longer than one of a larger batch was disturbed, and gets that one's time.
CostCurves::Knots FitCurve(absl::Span<const CostTrial> trials, const Parallelism& parallelism);

// Trials of a route that searches for queries in key order. The cost of a query falls as the batch
// grows, since neighbors share cache lines. A batch that is too large for a trial is estimated from
// a slice of it.
struct SortedTrials {
  absl::Span<const CostTrial> trials;  // of the route
  absl::Span<const CostTrial> slices;  // of searches only: a slice's time, scaled to the whole
                                       // batch
  bool by_thread = false;  // each thread sorts its part of the batch, which is less dense than the
                           // whole
};

// Returns the time of a query of the largest trial in addition to its search; 0 if that trial is
// smaller than every sliced batch.
double SortCost(const SortedTrials& sorted, const Parallelism& parallelism);

// Returns the trials, followed by estimates for larger batches from their slices. The time of a
// query in addition to its search stays the same, except that `sort_cost` of it grows with the
// logarithm of the batch.
std::vector<CostTrial> Extend(const SortedTrials& sorted, double sort_cost,
                              const Parallelism& parallelism);

}  // namespace cairn
