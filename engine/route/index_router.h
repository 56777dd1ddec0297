#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cairn/secondary_index.h"
#include "cairn/sorted_run.h"
#include "engine/route/cost_model.h"
#include "engine/route/resident_indexes.h"
#include "engine/route/route.h"
#include "index/files/file_system.h"

// What an index's Router (router.h) is made of.
namespace cairn {

// The routes over resident indexes, which must outlive them: each unbuffered, and those of the CPU
// by the other strategies too. From the host a GPU is given batches as they are: the link, not the
// search, bounds them (docs/results/2026-11-21-gpu.md, batches from the host).
std::vector<Route> MakeRoutes(const ResidentIndexes& resident, int threads);

// Makes cost models for routes over one run. Thread-safe.
class CostCalibration {
 public:
  // For the `number`th base of the index in `directory`; nothing is stored or read where the
  // directory is empty. The routes answer large batches with `threads` threads. `files` must
  // outlive this.
  CostCalibration(std::vector<const Route*> routes, SortedRun run, int threads,
                  std::string directory, uint64_t number, FileSystem* files = FileSystem::Posix());

  // One model a route, in their order, from what is stored or from trials, which are then stored
  // (calibration_file.h). Null where there is nothing to choose, and for Calibration::kNone; a
  // route that fails in its trials predicts infinite times.
  std::vector<std::unique_ptr<CostModel>> Get(Calibration calibration) const;

 private:
  const std::vector<const Route*> routes_;
  const SortedRun run_;
  const int threads_;
  const std::string directory_;
  const uint64_t number_;
  FileSystem* const files_;
};

}  // namespace cairn
