#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/options.h"
#include "cairn/sorted_run.h"
#include "engine/route/cost_model.h"
#include "engine/route/resident_indexes.h"
#include "engine/route/route.h"
#include "engine/route/router.h"
#include "index/files/file_system.h"

namespace cairn {

// Returns routes over resident indexes, which must outlive them: one unbuffered route per index,
// and for indexes on the CPU the other strategies too. A GPU gets batches from host memory as they
// are, since the link is the bottleneck, not the search: 2^24 32-bit keys take 1.61 ms from pinned
// memory of an H200's host (Response/gpu:auto/u32/n:24/batch:24), and 0.41 ms in device memory.
std::vector<Route> MakeRoutes(const ResidentIndexes& resident, int threads);

struct IndexRouterOptions {
  Calibration calibration = Calibration::kTrials;
  int threads = 1;  // for large batches
  // Directory and number of the base for which results are read and, with kStore, written; none if
  // empty. `files` must outlive the router.
  std::string directory = {};
  uint64_t number = 0;
  FileSystem* files = FileSystem::Posix();
};

// Answers batches over one run, each on the best route. Thread-safe.
class IndexRouter {
 public:
  // Creates routes over `resident`, which must be indexes of `run` and outlive this. Their cost
  // models are from new trials or from stored ones (calibration_file.h). There are none if there is
  // only one route. `rows_per_key`: the mean number of entries per key of the run.
  IndexRouter(const ResidentIndexes& resident, SortedRun run, double rows_per_key,
              IndexRouterOptions options);

  const Router& router() const { return router_; }

  // Answers a batch from the run's entries. A Scan starts at the beginning of its ranges. If routes
  // have drifted from their trials, runs new trials afterwards.
  absl::Status Execute(const Batch& batch) const;

 private:
  std::vector<std::unique_ptr<CostModel>> MakeCosts(Calibration calibration) const;

  const SortedRun run_;
  const double rows_per_key_;
  const IndexRouterOptions options_;
  mutable Router router_;
  mutable std::atomic_flag calibrating_ = ATOMIC_FLAG_INIT;
  mutable std::atomic<double> rows_per_range_{1};  // moving average over scans
};

}  // namespace cairn
