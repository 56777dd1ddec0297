#include "tools/bench/index/column_sets.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/columns/column_file.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench {

ColumnValues MakeColumn(const std::string& name, size_t rows) {
  Random random(kSeed);
  const auto numbers = [&](DataType type, auto next) {
    ColumnValues values(type);
    auto* const out = values.ExtendNumbers<decltype(next(size_t{0}))>(rows);
    for (size_t i = 0; i < rows; ++i) out[i] = next(i);
    return values;
  };
  if (name == "flag") {
    return numbers(DataType::kU8, [&](size_t) { return static_cast<uint8_t>(random.Below(3)); });
  }
  if (name == "time") {
    return numbers(DataType::kI64, [&](size_t i) {
      return int64_t{1'700'000'000'000'000} + static_cast<int64_t>(i * 1000 + random.Below(1000));
    });
  }
  if (name == "id") return numbers(DataType::kU64, [&](size_t) { return random(); });
  if (name == "price") {
    return numbers(DataType::kF64,
                   [&](size_t) { return static_cast<double>(random.Below(100'000)) / 100; });
  }
  if (name == "measure") {
    return numbers(DataType::kF64,
                   [&](size_t) { return static_cast<double>(random() >> 11) * 0x1p-53; });
  }
  if (name == "nullable") {
    ColumnValues values = numbers(
        DataType::kU32, [&](size_t) { return static_cast<uint32_t>(random.Below(1'000'000)); });
    for (size_t i = 0; i < rows; ++i) {
      if (random.Below(10) == 0) values.SetNull(i);
    }
    return values;
  }
  ColumnValues values(DataType::kText);
  for (size_t i = 0; i < rows; ++i) {
    if (name == "country") {
      values.AppendBytes(absl::StrFormat("land %d%s", random.Below(50), &"abcd"[random.Below(4)]));
    } else if (name == "name") {
      values.AppendBytes(
          absl::StrFormat("%08x name%s", random() & 0xFFFFFFFF, &" number"[random.Below(8)]));
    } else {
      throw std::runtime_error("no column " + name);
    }
  }
  return values;
}

uint64_t PlainBytes(const ColumnValues& values) {
  if (values.width() != 0) return values.size() * values.width();
  return values.strings().heap().size() + values.size() * sizeof(uint64_t);
}

const ColumnTable& TableOf(const std::string& name, int log2_rows) {
  static std::string last;
  static ColumnTable table;
  const std::string wanted = absl::StrFormat("%s/%d", name, log2_rows);
  if (last == wanted) return table;
  const std::string path =
      (std::filesystem::temp_directory_path() / "cairn_bench_columns").string();
  std::filesystem::remove(path);
  std::vector<ColumnValues> columns;
  columns.push_back(MakeColumn(name, size_t{1} << log2_rows));
  const auto writer = OrThrow(ColumnFileWriter::Create(path, {{name, columns[0].type()}}));
  OrThrow(writer->Append(columns));
  OrThrow(writer->Finish());
  table = OrThrow(OpenColumnFile(path, VerifyLevel::kFull)).table;
  std::filesystem::remove(path);  // the mapping stays
  last = wanted;
  return table;
}

}  // namespace cairn::bench
