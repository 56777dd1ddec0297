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
  // What trials on the CPU's routes may take, and on those of GPUs. Keys are drawn from the run
  // besides, which takes a millisecond or two, threads are woken for a dozen batches, and each
  // route answers one key before it is timed.
  absl::Duration cpu_budget = absl::Milliseconds(8);
  absl::Duration gpu_budget = absl::Milliseconds(12);
  // The threads that a route of the CPU spreads a large batch over.
  int threads = 1;
  // Nanoseconds from any moment on, never going back; null: the steady clock.
  std::function<int64_t()> now_ns;
};

// Makes trials on each of the routes, which are over `run`, with keys that are in it, and fits cost
// curves to their times: one result a route, in their order; the error of its trial where a route
// fails. ResourceExhausted where there is no memory for trials.
//
// Not to be called while other batches are answered, which would slow the trials down.
absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> Calibrate(
    absl::Span<const Route* const> routes, const SortedRun& run,
    const CalibrationOptions& options = {});

}  // namespace cairn
