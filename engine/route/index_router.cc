#include "engine/route/index_router.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/route/calibration.h"
#include "engine/route/calibration_file.h"

namespace cairn {
namespace {

using Curves = std::vector<CostCurves>;

// The weight of the newest scan in the expected rows of the next one.
constexpr double kWeightOfLastScan = 0.25;

// Runs new trials. A route that fails has no curves.
Curves MakeTrials(absl::Span<const Route* const> routes, const SortedRun& run, int threads,
                  bool* all_went_well) {
  CalibrationOptions options;
  options.threads = threads;
  const auto trials = Calibrate(routes, run, options);
  Curves curves(routes.size());
  *all_went_well = trials.ok();
  for (size_t i = 0; trials.ok() && i < routes.size(); ++i) {
    const absl::StatusOr<CostCurves>& trial = (*trials)[i];
    if (trial.ok()) curves[i] = *trial;
    *all_went_well = *all_went_well && trial.ok();
  }
  return curves;
}

}  // namespace

std::vector<Route> MakeRoutes(const ResidentIndexes& resident, int threads) {
  std::vector<Route> routes;
  for (const ResidentIndex& index : resident.indexes) {
    const auto add = [&](const char* suffix, Strategy strategy) {
      routes.emplace_back(index.name + suffix, index.index.get(), index.on_gpu, strategy, threads);
    };
    add("", Strategy::kUnbuffered);
    if (index.on_gpu) continue;
    add("+buffered", Strategy::kBuffered);
    add("+sort_based", Strategy::kSortBased);
  }
  return routes;
}

IndexRouter::IndexRouter(const ResidentIndexes& resident, SortedRun run, double rows_per_key,
                         IndexRouterOptions options)
    : run_(std::move(run)),
      rows_per_key_(rows_per_key),
      options_(std::move(options)),
      router_(MakeRoutes(resident, options_.threads)) {
  router_.SetCosts(MakeCosts(options_.calibration));
}

absl::Status IndexRouter::Execute(const Batch& batch) const {
  const double per_range = rows_per_range_.load(std::memory_order_relaxed);
  const auto queries = static_cast<double>(batch.size());
  const bool scan = batch.operation == Operation::kScan;
  const double rows = scan                                  ? queries * per_range
                      : batch.operation == Operation::kFind ? queries * rows_per_key_
                                                            : 0;
  absl::Status status = router_.Execute(batch, rows);
  if (scan && status.ok() && !batch.empty()) {
    const double found = static_cast<double>(batch.matches->row_ids.size()) / queries;
    rows_per_range_.store(per_range + (found - per_range) * kWeightOfLastScan,
                          std::memory_order_relaxed);
  }
  // Trials take milliseconds, so a batch with a latency target does not run them.
  if (router_.TrialsAreDue() && batch.options.latency_target == absl::InfiniteDuration() &&
      !calibrating_.test_and_set()) {
    router_.SetCosts(MakeCosts(Calibration::kTrials));
    calibrating_.clear();
  }
  return status;
}

// Returns one model per route, in order, and stores results of new trials. A route whose trials
// fail predicts infinite times.
std::vector<std::unique_ptr<CostModel>> IndexRouter::MakeCosts(Calibration calibration) const {
  const std::vector<const Route*> routes = router_.routes();
  const std::string& directory = options_.directory;
  std::vector<std::unique_ptr<CostModel>> costs(routes.size());
  if (calibration == Calibration::kNone || routes.size() < 2) return costs;
  const bool gpus =
      std::any_of(routes.begin(), routes.end(), [](const Route* route) { return route->on_gpu(); });
  CalibrationRecord record;
  record.key = {MachineDescription(gpus), options_.number,
                StructureDescription(routes, run_.size(), options_.threads)};
  absl::StatusOr<Curves> stored = absl::NotFoundError("not loaded");
  if (calibration != Calibration::kTrials && !directory.empty()) {
    stored = LoadCalibration(directory, record.key, options_.files);
  }
  if (stored.ok() && stored->size() == routes.size()) {
    record.routes = *std::move(stored);
  } else {
    bool all_went_well = false;
    record.routes = MakeTrials(routes, run_, options_.threads, &all_went_well);
    // If the write fails, the next Open runs the trials again.
    if (all_went_well && options_.calibration == Calibration::kStore && !directory.empty()) {
      StoreCalibration(directory, record, options_.files).IgnoreError();
    }
  }
  const auto cpu_drift = std::make_shared<DeviceDrift>();
  const auto gpu_drift = std::make_shared<DeviceDrift>();
  for (size_t i = 0; i < routes.size(); ++i) {
    costs[i] =
        std::make_unique<CostModel>(record.routes[i], routes[i]->on_gpu() ? gpu_drift : cpu_drift);
  }
  return costs;
}

}  // namespace cairn
