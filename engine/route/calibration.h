#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "engine/route/cost_model.h"
#include "engine/route/route.h"

namespace cairn {

struct CalibrationOptions {
  // Maximum time of trials on the routes of the CPU and of GPUs. In addition, drawing keys from the
  // run takes a millisecond or two, threads are woken for a dozen batches, and each route answers
  // one key before it is timed.
  absl::Duration cpu_budget = absl::Milliseconds(8);
  absl::Duration gpu_budget = absl::Milliseconds(12);
  // Number of threads over which a route of the CPU spreads a large batch.
  int threads = 1;
  // A clock in nanoseconds from any epoch that never goes back; null: the steady clock.
  std::function<int64_t()> now_ns;
};

// Runs trials on each of the routes, which are over `run`, with keys of the run, and fits cost
// curves to their times. Returns one result per route, in order; for a route that fails, the error
// of its trial. ResourceExhausted: no memory for trials.
//
// Do not run other batches concurrently: they would slow the trials down.
absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> Calibrate(
    absl::Span<const Route* const> routes, const SortedRun& run,
    const CalibrationOptions& options = {});

}  // namespace cairn
