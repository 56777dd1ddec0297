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

// Runs and times trials on routes over one run. The constructor's arguments must outlive it. Not
// thread-safe. Throws std::bad_alloc.
class CalibrationTrials {
 public:
  CalibrationTrials(absl::Span<const Route* const> routes, const SortedRun& run,
                    const std::function<int64_t()>& now_ns);

  // Returns whether a trial can run the operation on the route.
  static bool Takes(const Route& route, Operation operation);

  // Runs a trial of at least `least` batches of `size` queries. `expected` is the expected maximum
  // time of one batch in nanoseconds. Adds the typical time of all repeats to *spent.
  absl::StatusOr<CostTrial> Try(Ladder* ladder, size_t size, size_t least, double expected,
                                double* spent);

 private:
  // Returns the time of one batch in nanoseconds.
  absl::StatusOr<double> Time(Ladder* ladder, size_t size);
  absl::Status Ask(const Route& route, Ladder::Kind kind, KeyBatch keys, const RangeBatch& ranges);

  const absl::Span<const Route* const> routes_;
  const std::function<int64_t()>& now_ns_;
  QuerySample sample_;
  double clock_ns_;  // time of reading the clock

  // Results.
  std::vector<RowId> row_ids_;
  std::vector<uint32_t> query_of_;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

}  // namespace cairn
