// A row table of any bytes either is refused or answers right, without reading outside of its
// bytes. Bytes are tried as they are and with every checksum made right.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/rows/row_table_file.h"
#include "test/forged_file.h"

namespace cairn {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void OpenAndRead(std::string_view bytes) {
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    auto file = OpenBytes(bytes, kRowTableFileFormat, level);
    if (!file.ok()) continue;
    const auto opened = OpenRowTable(*std::move(file), 1);
    if (!opened.ok()) {
      Require(absl::IsDataLoss(opened.status()));
      continue;
    }
    const RowTable& table = opened->table;

    std::vector<RowId> rows;
    for (uint64_t row = 0; row < std::min<uint64_t>(table.rows(), 2000); ++row) {
      rows.push_back(static_cast<RowId>(row));
    }
    StringList column;
    Require(table.PrimaryKeys(rows, &column).ok());
    std::vector<std::string_view> keys = {"", "a", "key-0042", std::string_view("\xff\xff", 2)};
    for (size_t i = 0; i < column.size(); ++i) keys.push_back(column[i]);
    std::vector<RowId> found(keys.size());
    Require(table.LowerBound(keys, absl::MakeSpan(found)).ok());
    Require(table.Find(keys, absl::MakeSpan(found)).ok());
    // It finds every key that it gives.
    for (size_t i = 0; i < rows.size(); ++i) {
      Require(found[keys.size() - rows.size() + i] == rows[i]);
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
