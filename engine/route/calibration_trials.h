#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "engine/route/calibration_ladder.h"
#include "engine/route/curve_fit.h"
#include "engine/route/query_sample.h"
#include "engine/route/route.h"

namespace cairn {

// Makes one trial after another on routes over one run, and times them. What it is given must
// outlive it. Not thread-safe. Throws std::bad_alloc.
class CalibrationTrials {
 public:
  CalibrationTrials(absl::Span<const Route* const> routes, const SortedRun& run,
                    const std::function<int64_t()>& now_ns);

  // Whether a trial can ask the route for the operation.
  static bool Takes(const Route& route, Operation operation);

  // Makes a trial of at least so many batches of that size, of which one is expected to take at
  // most so many nanoseconds. To *spent is added what the repeats typically take.
  absl::StatusOr<CostTrial> Try(Ladder* ladder, size_t size, size_t least, double expected,
                                double* spent);

 private:
  // The nanoseconds that one batch takes.
  absl::StatusOr<double> Time(Ladder* ladder, size_t size);
  absl::Status Ask(const Route& route, Ladder::Kind kind, KeyBatch keys, const RangeBatch& ranges);

  const absl::Span<const Route* const> routes_;
  const std::function<int64_t()>& now_ns_;
  QuerySample sample_;
  double clock_ns_;  // that reading the clock takes

  // Results.
  std::vector<RowId> row_ids_;
  std::vector<uint32_t> query_of_;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

}  // namespace cairn
