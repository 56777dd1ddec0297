// Arbitrary bytes as a calibration: either they are rejected, or the calibration formats to the
// same bytes. The bytes are used unchanged, and as the lines before a correct checksum.
#include "engine/route/calibration_file.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "index/files/checksum.h"

namespace cairn {
namespace {

void ParseAndFormat(std::string_view text) {
  const auto records = ParseCalibration(text, "fuzz");
  if (!records.ok()) return;
  const auto again = FormatCalibration(*records);
  if (!again.ok() || *again != text) std::abort();
  // A router's cost models from the file must predict valid times.
  for (const CalibrationRecord& record : *records) {
    for (const CostCurves& curves : record.routes) {
      const CostModel model(curves);
      for (size_t queries = 1; queries != 0; queries *= 4) {
        if (!(model.Predict({Operation::kFindFirst, queries}) > 0)) std::abort();
        if (!(model.Predict({Operation::kScan, queries, 1e6}) > 0)) std::abort();
      }
    }
  }
}

// The lines of `text` without its checksum, if it has one.
std::string_view Lines(std::string_view text) {
  const size_t at = text.rfind("checksum ");
  return at == std::string_view::npos ? text : text.substr(0, at);
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  cairn::ParseAndFormat(text);
  const std::string_view lines = cairn::Lines(text);
  cairn::ParseAndFormat(
      absl::StrFormat("%schecksum %016x\n", lines, cairn::Checksum(lines.data(), lines.size())));
  return 0;
}
