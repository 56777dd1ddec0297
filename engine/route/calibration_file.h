#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/route/cost_model.h"
#include "engine/route/route.h"
#include "index/files/file_system.h"

// What trials found is kept in the file CALIBRATION of an index's directory, so that the next to
// open the index on such a machine need not make them. The file is no part of the index: the
// manifest does not name it, it may be removed at any time, and a damaged one is as good as none.

namespace cairn {

// What the times of routes depend on.
struct CalibrationKey {
  std::string machine;    // MachineDescription()
  uint64_t version = 0;   // of the index (Manifest::version)
  std::string structure;  // StructureDescription()

  bool operator==(const CalibrationKey&) const = default;
};

// The processor's name and the number of cores that this process may use, and the names of GPUs if
// `gpus` and there are any: "Intel(R) Xeon(R) Processor, 16 cores, NVIDIA H200".
std::string MachineDescription(bool gpus);
// The routes' names and ordered indexes, the entries of the run that these are over, and the
// threads that answer large batches.
std::string StructureDescription(absl::Span<const Route* const> routes, uint64_t entries,
                                 int threads);

// One set of routes' curves.
struct CalibrationRecord {
  CalibrationKey key;
  std::vector<CostCurves> routes;  // in the order that the key's structure has them

  bool operator==(const CalibrationRecord&) const = default;
};

inline constexpr size_t kMaxCalibrationRecords = 16;
inline constexpr size_t kMaxCalibratedRoutes = 64;
inline constexpr uint64_t kMaxCalibrationBytes = 4 << 20;

// The records as text: lines, the last of them a checksum of all before it. InvalidArgument where a
// description cannot stand in a line, a curve is none, or there are too many.
absl::StatusOr<std::string> FormatCalibration(absl::Span<const CalibrationRecord> records);
// Reads exactly what FormatCalibration writes: DataLoss, naming `path` and the line, for anything
// else; FailedPrecondition for another version of the format.
absl::StatusOr<std::vector<CalibrationRecord>> ParseCalibration(std::string_view text,
                                                                std::string_view path);

// The curves that were stored under `key` in an index's directory, one a route. NotFound where
// there are none; DataLoss, FailedPrecondition as above.
absl::StatusOr<std::vector<CostCurves>> LoadCalibration(const std::string& directory,
                                                        const CalibrationKey& key,
                                                        FileSystem* files = FileSystem::Posix());
// Stores them, in the place of those that stood there under the same key, of those of versions
// before, and of the oldest where there are too many. An error leaves the file as it was; a reader,
// in whatever process, finds the file before or after. Of two writers at a time one may be lost.
absl::Status StoreCalibration(const std::string& directory, const CalibrationRecord& record,
                              FileSystem* files = FileSystem::Posix());

}  // namespace cairn
