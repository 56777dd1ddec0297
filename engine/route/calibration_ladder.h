#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu_fast/batch/parallel_batch.h"
#include "engine/route/curve_fit.h"

namespace cairn {

// Trials of one kind on one route, with growing batches.
struct Ladder {
  // Maximum size of the slice that is tried in place of a large sorted batch.
  static constexpr size_t kSlice = 512;
  static constexpr size_t kSlicedGrowth = 4;
  // A trial repeats batches of one size for at least this total time, and at least kMinRepeats
  // times: the first one after other batches has cold scratch memory or allocates it.
  static constexpr double kTrialNanoseconds = 30e3;
  static constexpr size_t kMinRepeats = 2;

  enum class Kind : uint8_t {
    kPoint,
    kSortedPoint,
    kFind,
    kCount,
    kRows,    // Scan of ranges that have more rows than Find's keys
    kSlices,  // slices of large sorted batches, on the route's index; times are those of whole
              // batches
    kFanOut,  // kPoint on one thread, on two, on all, and on all with twice the queries
  };

  Kind kind;
  size_t route;  // index of the route
  size_t first;  // number of queries of the first trial
  size_t most;   // number of queries of the largest trial
  Parallelism parallelism;
  std::vector<CostTrial> trials = {};
  double last_ns = 0;  // time of the last trial
  size_t queries = 0;  // of all trials and repeats, and number of rows that they found
  size_t rows = 0;

  size_t NextSize(size_t growth) const {
    if (kind == Kind::kSlices) growth = std::min(growth, kSlicedGrowth);
    if (kind == Kind::kFanOut) growth = trials.size() == 2 ? most / 2 / trials.back().queries : 2;
    return trials.empty() ? first : std::min(trials.back().queries * growth, most);
  }
  bool done() const { return !trials.empty() && trials.back().queries >= most; }
  // Returns the number of queries to run for a batch of that size.
  size_t Asked(size_t size) const { return kind == Kind::kSlices ? std::min(size, kSlice) : size; }
  // Returns the predicted time of the next trial; 0 if unknown.
  double NextCost(size_t growth) const {
    if (trials.empty()) return 0;
    const double more = QueriesOfOneThread(Asked(NextSize(growth)), parallelism) /
                        QueriesOfOneThread(Asked(trials.back().queries), parallelism);
    return std::max(last_ns * more * kMinRepeats, kTrialNanoseconds);
  }
  double RowsPerQuery() const { return static_cast<double>(rows) / static_cast<double>(queries); }
};

}  // namespace cairn
