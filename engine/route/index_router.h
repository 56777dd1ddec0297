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

// The routes over resident indexes, which must outlive them: each unbuffered, and those of the CPU
// by the other strategies too. A GPU gets batches from host memory as they are, because the link
// bounds them and not the search: 2^24 32-bit keys take 1.61 ms from pinned memory of an H200's
// host (Response/gpu:auto/u32/n:24/batch:24), and 0.41 ms in device memory.
std::vector<Route> MakeRoutes(const ResidentIndexes& resident, int threads);

struct IndexRouterOptions {
  Calibration calibration = Calibration::kTrials;
  int threads = 1;  // for large batches
  // Where results are read from and, with kStore, written to: for the `number`th base of the index
  // in this directory; nowhere if that is empty. `files` must outlive the router.
  std::string directory = {};
  uint64_t number = 0;
  FileSystem* files = FileSystem::Posix();
};

// Answers batches over one run, each on the route that suits it. Thread-safe.
class IndexRouter {
 public:
  // Routes over `resident`, which are of `run` and must outlive this, with cost models of new
  // trials or of those that are stored (calibration_file.h); with none where there is nothing to
  // choose. A key of the run has `rows_per_key` entries, on average.
  IndexRouter(const ResidentIndexes& resident, SortedRun run, double rows_per_key,
              IndexRouterOptions options);

  const Router& router() const { return router_; }

  // Answers a batch from the run's entries; a Scan from its beginning. Where routes have drifted
  // from their trials, new ones are made behind it.
  absl::Status Execute(const Batch& batch) const;

 private:
  std::vector<std::unique_ptr<CostModel>> MakeCosts(Calibration calibration) const;

  const SortedRun run_;
  const double rows_per_key_;
  const IndexRouterOptions options_;
  mutable Router router_;
  mutable std::atomic_flag calibrating_ = ATOMIC_FLAG_INIT;
  mutable std::atomic<double> rows_per_range_{1};  // of scans so far, the last ones weighing most
};

}  // namespace cairn
