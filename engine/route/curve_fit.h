#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/route/cost_model.h"

// From the times of a few batches to those of all.
namespace cairn {

// What a trial found: the time of a batch of so many queries, a power of two.
struct CostTrial {
  size_t queries = 0;
  double ns = 0;
};

// The queries that the busiest thread answers of a batch.
double QueriesOfOneThread(size_t queries, const Parallelism& parallelism);

// What becomes of a batch's time when it is spread over threads: they have to be woken, and wait
// for one memory. Nothing for one part; between two parts and max_parts in proportion to them.
struct FanOut {
  double two_ns = 0;    // to wake threads for two parts
  double max_ns = 0;    // and for max_parts
  double slowdown = 1;  // of max_parts that work at a time, against one
  size_t max_parts = 2;

  // The time of a batch of which the busiest thread's part would take it `part_ns` alone.
  double Time(size_t queries, double part_ns, const Parallelism& parallelism) const;
};

// From trials of one part, of two and of as many as there are threads, all of min_slice queries a
// thread, and another of as many as there are threads with twice the queries. Where there are two
// threads only, the second is the third. Nothing from less than three trials.
FanOut FitFanOut(absl::Span<const CostTrial> trials, const Parallelism& parallelism);

// The curve through trials of ascending sizes of a route that spreads a batch over threads as
// `parallelism` says. Requires one trial at least, and positive times.
//
// Time is taken to be linear in the queries that the busiest thread answers: between two trials,
// and behind the last with the marginal cost that the last two found, or a sixteenth of a query's
// mean cost where that is more. A single trial is taken to be all cost of queries. A trial that
// took longer than one of a larger batch was disturbed, and counts as that one's time.
CostCurves::Knots FitCurve(absl::Span<const CostTrial> trials, const Parallelism& parallelism);

// Trials of a route that searches for queries in key order. What a query costs there falls as the
// batch grows, since neighbours share what they read, and a batch that is too large to be tried is
// searched for as a slice of it is.
struct SortedTrials {
  absl::Span<const CostTrial> trials;  // of the route
  absl::Span<const CostTrial> slices;  // of searches alone: a slice's time, for the whole batch
  bool by_thread = false;  // each thread sorts its part of the batch, which is less dense than all
};

// What a query of the largest trial took beyond its search; 0 where that is smaller than any batch
// that was sliced.
double SortCost(const SortedTrials& sorted, const Parallelism& parallelism);

// The trials, and behind them what those of larger batches would find by their slices. The time
// that a query takes beyond its search stays what it was, but for `sort_cost` of it, which grows
// with the logarithm of the batch.
std::vector<CostTrial> Extend(const SortedTrials& sorted, double sort_cost,
                              const Parallelism& parallelism);

}  // namespace cairn
