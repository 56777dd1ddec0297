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

// New trials; no curves for a route that fails in them.
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

CostCalibration::CostCalibration(std::vector<const Route*> routes, SortedRun run, int threads,
                                 std::string directory, uint64_t number, FileSystem* files)
    : routes_(std::move(routes)),
      run_(std::move(run)),
      threads_(threads),
      directory_(std::move(directory)),
      number_(number),
      files_(files) {}

std::vector<std::unique_ptr<CostModel>> CostCalibration::Get(Calibration calibration) const {
  std::vector<std::unique_ptr<CostModel>> costs(routes_.size());
  if (calibration == Calibration::kNone || routes_.size() < 2) return costs;
  const bool gpus = std::any_of(routes_.begin(), routes_.end(),
                                [](const Route* route) { return route->on_gpu(); });
  CalibrationRecord record;
  record.key = {MachineDescription(gpus), number_,
                StructureDescription(routes_, run_.size(), threads_)};
  absl::StatusOr<Curves> stored = absl::NotFoundError("not looked for");
  if (calibration == Calibration::kStored && !directory_.empty()) {
    stored = LoadCalibration(directory_, record.key, files_);
  }
  if (stored.ok() && stored->size() == routes_.size()) {
    record.routes = *std::move(stored);
  } else {
    bool all_went_well = false;
    record.routes = MakeTrials(routes_, run_, threads_, &all_went_well);
    // Who may not write there makes trials at the next Open again.
    if (all_went_well && !directory_.empty()) {
      StoreCalibration(directory_, record, files_).IgnoreError();
    }
  }
  const auto cpu_drift = std::make_shared<DeviceDrift>();
  const auto gpu_drift = std::make_shared<DeviceDrift>();
  for (size_t i = 0; i < routes_.size(); ++i) {
    costs[i] =
        std::make_unique<CostModel>(record.routes[i], routes_[i]->on_gpu() ? gpu_drift : cpu_drift);
  }
  return costs;
}

}  // namespace cairn
