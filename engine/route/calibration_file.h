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

// Results of trials are stored in the file CALIBRATION of an index's directory, so that later
// openings on the same kind of machine skip the trials. The file is not a part of the index: the
// manifest does not list it, it may be removed at any time, and a damaged file is ignored.

namespace cairn {

// The conditions that the times of routes depend on.
struct CalibrationKey {
  std::string machine;    // MachineDescription()
  uint64_t version = 0;   // of the index (Manifest::version)
  std::string structure;  // StructureDescription()

  bool operator==(const CalibrationKey&) const = default;
};

// Returns the processor's name, the number of cores that this process may use, and, if `gpus`, the
// names of GPUs, if any: "Intel(R) Xeon(R) Processor, 16 cores, NVIDIA H200".
std::string MachineDescription(bool gpus);
// Returns the names and ordered indexes of the routes, the number of entries of their run, and the
// number of threads that answer large batches.
std::string StructureDescription(absl::Span<const Route* const> routes, uint64_t entries,
                                 int threads);

// The curves of one set of routes.
struct CalibrationRecord {
  CalibrationKey key;
  std::vector<CostCurves> routes;  // in the order of the routes in key.structure

  bool operator==(const CalibrationRecord&) const = default;
};

inline constexpr size_t kMaxCalibrationRecords = 16;
inline constexpr size_t kMaxCalibratedRoutes = 64;
inline constexpr uint64_t kMaxCalibrationBytes = 4 << 20;

// Returns the records as lines of text; the last line is a checksum of all others. InvalidArgument:
// a description does not fit on a line, a curve is invalid, or there are too many records or
// routes.
absl::StatusOr<std::string> FormatCalibration(absl::Span<const CalibrationRecord> records);
// Reads exactly the format of FormatCalibration. DataLoss, naming `path` and the line: any other
// text. FailedPrecondition: another version of the format.
absl::StatusOr<std::vector<CalibrationRecord>> ParseCalibration(std::string_view text,
                                                                std::string_view path);

// Returns the curves that are stored under `key` in an index's directory, one per route. NotFound:
// there are none. DataLoss and FailedPrecondition: as for ParseCalibration.
absl::StatusOr<std::vector<CostCurves>> LoadCalibration(const std::string& directory,
                                                        const CalibrationKey& key,
                                                        FileSystem* files = FileSystem::Posix());
// Stores a record. It replaces the record with the same key, those of earlier versions of the
// index, and, if there are too many, the oldest. On error the file is unchanged. Concurrent readers
// in any process see either the old or the new file. If two writers run concurrently, one record
// may be lost.
absl::Status StoreCalibration(const std::string& directory, const CalibrationRecord& record,
                              FileSystem* files = FileSystem::Posix());

}  // namespace cairn
