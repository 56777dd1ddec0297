#include "engine/route/calibration_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "index/files/manifest_text.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

constexpr std::string_view kFileName = "CALIBRATION";
constexpr std::string_view kFirstKey = "cairn-calibration";
constexpr uint64_t kVersion = 2;
// Indexed by CostCurves::Curve.
constexpr std::string_view kCurveNames[CostCurves::kCurves] = {"point", "sorted_point", "find",
                                                               "count"};
// Number of stored digits of times, which is more than the precision of trials.
constexpr int kDigits = 6;

bool IsPrintable(char c) {
  return c >= ' ' && c <= '~';
}

bool StandsInLine(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsPrintable);
}

std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !IsPrintable(c); }, '?');
  return text;
}

bool IsAmount(double value) {
  return std::isfinite(value) && value >= 0;
}

bool IsCurve(const CostCurves::Knots& knots) {
  if (!std::all_of(knots.begin(), knots.end(), IsAmount)) return false;
  return std::is_sorted(knots.begin(), knots.end()) && (knots.front() > 0 || knots.back() == 0);
}

bool AreCurves(const CostCurves& curves) {
  return IsAmount(curves.rows_per_query) && IsAmount(curves.ns_per_row) &&
         std::all_of(curves.ns.begin(), curves.ns.end(), IsCurve);
}

bool TakeAmount(std::string_view* text, double* amount) {
  const std::string_view word = TakeWord(text);
  const char* const end = word.data() + word.size();
  const auto [stop, error] = absl::from_chars(word.data(), end, *amount);
  return error == std::errc() && stop == end && IsAmount(*amount);
}

// Reads consecutive lines of the form "key value".
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  size_t line() const { return line_; }

  // Takes the next line if it has this key.
  bool Take(std::string_view key, std::string_view* value) {
    const std::string_view line = text_.substr(0, text_.find('\n'));
    if (line.size() == text_.size() || line.size() <= key.size() ||
        line.substr(0, key.size()) != key || line[key.size()] != ' ') {
      return false;
    }
    *value = line.substr(key.size() + 1);
    text_.remove_prefix(line.size() + 1);
    ++line_;
    return true;
  }

 private:
  std::string_view text_;
  size_t line_ = 1;  // number of the next line
};

bool ReadRoute(std::string_view rows, LineReader* lines, CostCurves* curves) {
  if (!TakeAmount(&rows, &curves->rows_per_query)) return false;
  if (!TakeAmount(&rows, &curves->ns_per_row) || !rows.empty()) return false;
  for (size_t curve = 0; curve < CostCurves::kCurves; ++curve) {
    std::string_view value;
    if (!lines->Take(kCurveNames[curve], &value)) continue;
    for (double& ns : curves->ns[curve]) {
      if (!TakeAmount(&value, &ns)) return false;
    }
    if (!value.empty()) return false;
  }
  return AreCurves(*curves);
}

bool ReadRecord(LineReader* lines, CalibrationRecord* record) {
  std::string_view value;
  if (!lines->Take("machine", &value)) return false;
  record->key.machine = value;
  if (!lines->Take("version", &value) || !ParseDecimal(value, &record->key.version)) return false;
  if (!lines->Take("structure", &value)) return false;
  record->key.structure = value;
  while (lines->Take("rows", &value)) {
    if (record->routes.size() == kMaxCalibratedRoutes) return false;
    if (!ReadRoute(value, lines, &record->routes.emplace_back())) return false;
  }
  return true;
}

// Returns the processor's name as Linux reports it.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

absl::StatusOr<std::vector<CalibrationRecord>> ReadRecords(FileSystem* files,
                                                           const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(files, path, kMaxCalibrationBytes));
  return ParseCalibration(text, path);
}

// Not synced: after a power failure the file may be damaged, which is the same as no file.
absl::Status WriteAndRename(FileSystem* files, const std::string& text, const std::string& path) {
  // A name unique to this call. If this process dies before the rename, an index's writer removes
  // the file.
  static std::atomic<uint64_t> calls{0};
  const std::string new_path = absl::StrFormat("%s.%d.%d.tmp", path, getpid(), calls.fetch_add(1));
  absl::Status written;
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                     files->Create(new_path, IfExists::kFail));
    written = file->WriteAt(0, text.data(), text.size());
  }
  if (written.ok()) written = files->Rename(new_path, path);
  if (!written.ok()) files->Remove(new_path).IgnoreError();
  return written;
}

}  // namespace

std::string MachineDescription(bool gpus) {
  const int cores = Topology::Get().cores();
  std::string text =
      absl::StrFormat("%s, %d core%s", ProcessorName(), cores, cores == 1 ? "" : "s");
  if (gpus) {
    const absl::StatusOr<std::vector<Device>> devices = ListDevices();
    if (devices.ok()) {
      for (const Device& device : *devices) text += ", " + device.name;
    }
  }
  return Printable(std::move(text));
}

std::string StructureDescription(absl::Span<const Route* const> routes, uint64_t entries,
                                 int threads) {
  std::string text = absl::StrFormat("entries=%d threads=%d", entries, threads);
  for (const Route* route : routes) {
    absl::StrAppendFormat(&text, " %s=%s", route->name(), route->index().description());
  }
  return Printable(std::move(text));
}

absl::StatusOr<std::string> FormatCalibration(absl::Span<const CalibrationRecord> records) {
  if (records.size() > kMaxCalibrationRecords) {
    return absl::InvalidArgumentError(absl::StrFormat("expected at most %d calibrations, got %d",
                                                      kMaxCalibrationRecords, records.size()));
  }
  std::string text = absl::StrFormat("%s %d\n", kFirstKey, kVersion);
  for (const auto& [key, routes] : records) {
    if (!StandsInLine(key.machine) || !StandsInLine(key.structure)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("expected descriptions of one printable line, got %d and %d bytes",
                          key.machine.size(), key.structure.size()));
    }
    if (routes.size() > kMaxCalibratedRoutes) {
      return absl::InvalidArgumentError(absl::StrFormat("expected at most %d routes, got %d",
                                                        kMaxCalibratedRoutes, routes.size()));
    }
    absl::StrAppendFormat(&text, "machine %s\nversion %d\nstructure %s\n", key.machine, key.version,
                          key.structure);
    for (const CostCurves& curves : routes) {
      if (!AreCurves(curves)) {
        return absl::InvalidArgumentError(
            "expected times of a route that are finite and do not decrease");
      }
      absl::StrAppendFormat(&text, "rows %.*g %.*g\n", kDigits, curves.rows_per_query, kDigits,
                            curves.ns_per_row);
      for (size_t curve = 0; curve < CostCurves::kCurves; ++curve) {
        if (curves.ns[curve][0] == 0) continue;
        text += kCurveNames[curve];
        for (const double ns : curves.ns[curve]) absl::StrAppendFormat(&text, " %.*g", kDigits, ns);
        text += '\n';
      }
    }
  }
  AppendChecksumLine(&text);
  if (text.size() > kMaxCalibrationBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "expected calibrations of at most %d bytes, got %d", kMaxCalibrationBytes, text.size()));
  }
  return text;
}

absl::StatusOr<std::vector<CalibrationRecord>> ParseCalibration(std::string_view text,
                                                                std::string_view path) {
  std::string_view body;
  RETURN_IF_ERROR(TakeChecksumLine(text, path, kMaxCalibrationBytes, &body));
  LineReader lines(body);
  const auto damaged = [&](std::string_view what) {
    return absl::DataLossError(
        absl::StrFormat("calibration '%s': line %d is damaged: %s", path, lines.line(), what));
  };
  std::string_view value;
  uint64_t version = 0;
  if (!lines.Take(kFirstKey, &value) || !ParseDecimal(value, &version)) {
    return damaged("expected 'cairn-calibration' and a format version");
  }
  if (version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("calibration '%s': format version %d; this build reads version %d", path,
                        version, kVersion));
  }
  std::vector<CalibrationRecord> records;
  while (!lines.done()) {
    if (records.size() == kMaxCalibrationRecords) return damaged("too many calibrations");
    if (!ReadRecord(&lines, &records.emplace_back())) {
      return damaged("this line or the previous one is not in canonical form");
    }
  }
  const absl::StatusOr<std::string> canonical = FormatCalibration(records);
  if (!canonical.ok() || *canonical != text) {
    return absl::DataLossError(
        absl::StrFormat("calibration '%s' is damaged: its lines are not in canonical form", path));
  }
  return records;
}

absl::StatusOr<std::vector<CostCurves>> LoadCalibration(const std::string& directory,
                                                        const CalibrationKey& key,
                                                        FileSystem* files) {
  const std::string path = absl::StrFormat("%s/%s", directory, kFileName);
  ASSIGN_OR_RETURN(std::vector<CalibrationRecord> records, ReadRecords(files, path));
  for (CalibrationRecord& record : records) {
    if (record.key == key) return std::move(record.routes);
  }
  return absl::NotFoundError(
      absl::StrFormat("calibration '%s': no entry for version %d on %s for %s", path, key.version,
                      key.machine, key.structure));
}

absl::Status StoreCalibration(const std::string& directory, const CalibrationRecord& record,
                              FileSystem* files) {
  const std::string path = absl::StrFormat("%s/%s", directory, kFileName);
  std::vector<CalibrationRecord> records;
  if (absl::StatusOr<std::vector<CalibrationRecord>> before = ReadRecords(files, path);
      before.ok()) {
    records = *std::move(before);
  }
  const auto replaced = [&](const CalibrationRecord& other) {
    return other.key == record.key || other.key.version < record.key.version;
  };
  records.erase(std::remove_if(records.begin(), records.end(), replaced), records.end());
  if (records.size() == kMaxCalibrationRecords) records.erase(records.begin());
  records.push_back(record);
  ASSIGN_OR_RETURN(const std::string text, FormatCalibration(records));
  return WriteAndRename(files, text, path);
}

}  // namespace cairn
