#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu_fast/batch/parallel_batch.h"
#include "engine/route/curve_fit.h"

namespace cairn {

// Trials of one kind on one route, of growing batches.
struct Ladder {
  // The part of a large sorted batch that is tried in its place.
  static constexpr size_t kSlice = 512;
  static constexpr size_t kSlicedGrowth = 4;
  // A trial is of batches of one size until they have taken this long together, and two at least:
  // the first after other batches finds scratch memory cold, or has to make it.
  static constexpr double kTrialNanoseconds = 30e3;
  static constexpr size_t kMinRepeats = 2;

  enum class Kind : uint8_t {
    kPoint,
    kSortedPoint,
    kFind,
    kCount,
    kRows,    // Scan of ranges with more rows than Find finds
    kSlices,  // slices of large sorted batches, put to the route's index; times are of whole
              // batches
    kFanOut,  // kPoint's on one thread, on two, on all, and on all with twice the queries
  };

  Kind kind;
  size_t route;  // its place among the routes
  size_t first;  // queries of the first trial
  size_t most;   // queries of the largest
  Parallelism parallelism;
  std::vector<CostTrial> trials = {};
  double last_ns = 0;  // that the last trial took
  size_t queries = 0;  // of all trials and repeats, and rows that they found
  size_t rows = 0;

  size_t NextSize(size_t growth) const {
    if (kind == Kind::kSlices) growth = std::min(growth, kSlicedGrowth);
    if (kind == Kind::kFanOut) growth = trials.size() == 2 ? most / 2 / trials.back().queries : 2;
    return trials.empty() ? first : std::min(trials.back().queries * growth, most);
  }
  bool done() const { return !trials.empty() && trials.back().queries >= most; }
  // Of that size, the queries that are asked.
  size_t Asked(size_t size) const { return kind == Kind::kSlices ? std::min(size, kSlice) : size; }
  // What the next trial will take; 0 where nothing is known.
  double NextCost(size_t growth) const {
    if (trials.empty()) return 0;
    const double more = QueriesOfOneThread(Asked(NextSize(growth)), parallelism) /
                        QueriesOfOneThread(Asked(trials.back().queries), parallelism);
    return std::max(last_ns * more * kMinRepeats, kTrialNanoseconds);
  }
  double RowsPerQuery() const { return static_cast<double>(rows) / static_cast<double>(queries); }
};

}  // namespace cairn
