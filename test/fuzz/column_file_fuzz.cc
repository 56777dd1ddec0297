// Arbitrary bytes as a column file: either they are rejected, or reads return values or DataLoss,
// without reading outside of the bytes. The bytes are used unchanged, and with all checksums
// corrected.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "index/columns/column_file.h"
#include "test/forged_file.h"

namespace cairn {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// Reads the first rows of a column, in order and by their ids, which must be the same.
void ReadColumn(const ColumnTable& table, size_t column, VerifyLevel level) {
  const uint64_t rows = std::min<uint64_t>(table.rows(), 2000);
  std::vector<RowId> row_ids(rows);
  for (uint64_t row = 0; row < rows; ++row) row_ids[row] = static_cast<RowId>(row);
  const DataType type = table.columns()[column].type;
  ColumnValues read(type), gathered(type);
  const absl::Status status = table.Read(column, 0, rows, &read);
  const absl::Status other = table.Gather(column, row_ids, &gathered);
  Require(status.ok() ? other.ok() : absl::IsDataLoss(status));
  // After a full verification, reads cannot fail.
  Require(level == VerifyLevel::kMetadata || status.ok());
  if (!status.ok()) return;
  Require(read.size() == rows && gathered.size() == rows);
  Require(read.null_count() == gathered.null_count());
  for (uint64_t row = 0; row < rows; ++row) {
    Require(read.is_null(row) == gathered.is_null(row));
    if (read.width() == 0) Require(read.bytes(row) == gathered.bytes(row));
  }
  const auto bytes = [&](const ColumnValues& values) {
    return std::string_view(static_cast<const char*>(values.data()), rows * values.width());
  };
  Require(rows == 0 || read.width() == 0 || bytes(read) == bytes(gathered));
}

void OpenAndRead(std::string_view bytes) {
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    auto file = OpenBytes(bytes, kColumnFileFormat, level);
    if (!file.ok()) continue;
    const auto opened = OpenColumnFile(*std::move(file), level, 1);
    if (!opened.ok()) {
      Require(absl::IsDataLoss(opened.status()));
      continue;
    }
    const ColumnTable& table = opened->table;
    for (size_t i = 0; i < table.columns().size(); ++i) {
      ReadColumn(table, i, level);
      Require(table.column_bytes(i) > 0 || table.rows() == 0);
    }
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  cairn::OpenAndRead(bytes);
  cairn::RepairChecksums(&bytes);
  cairn::OpenAndRead(bytes);
  return 0;
}
