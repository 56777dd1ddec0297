#include "index/columns/column_file.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/cold_reads.h"
#include "test/index/columns/column_files.h"
#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(column_file_test)
namespace {

using Made = std::function<OwnedValue(size_t)>;

std::vector<OwnedValue> Make(size_t rows, const Made& make) {
  std::vector<OwnedValue> values;
  for (size_t i = 0; i < rows; ++i) values.push_back(make(i));
  return values;
}
OwnedValue Text(std::string text) {
  return {std::monostate(), true, std::move(text)};
}
OwnedValue Number(DataValue number) {
  return {number, false, {}};
}

// Writes the columns, reads them back, and returns how many bytes each takes.
std::vector<uint64_t> RoundTrip(const Columns& columns, std::mt19937_64& random) {
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  WriteColumns(path, columns, 5000, random);
  std::vector<uint64_t> bytes;
  for (VerifyLevel level : {VerifyLevel::kMetadata, VerifyLevel::kFull}) {
    const ColumnFile file = RequireOk(OpenColumnFile(path, level, 2));
    for (const bool requests : {true, false}) {
      ColdReads::always_for_tests = requests;
      CheckTable(file.table, columns, random);
    }
    bytes.clear();
    for (size_t i = 0; i < columns.schemas.size(); ++i) bytes.push_back(file.table.column_bytes(i));
  }
  return bytes;
}

BOOST_AUTO_TEST_CASE(gives_back_columns_of_every_type_and_size, *StartsNoThread()) {
  auto random = TestRandom();
  for (const size_t rows : {0, 1, 2, 7, 8, 9, 1023, 1024, 1025, 2047, 2048, 2049, 5000}) {
    for (const int null_percent : {0, 3, 100}) {
      RoundTrip(RandomColumns(rows, null_percent, random), random);
    }
  }
}

BOOST_AUTO_TEST_CASE(gives_back_pieces_of_any_size, *StartsNoThread()) {
  auto random = TestRandom();
  const Columns columns = RandomColumns(3000, 10, random);
  const TemporaryDirectory directory;
  for (const size_t most : {1, 2, 100, 1024, 4000}) {
    const std::string path = directory / absl::StrFormat("columns%d", most);
    WriteColumns(path, columns, most, random);
    CheckTable(RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table, columns, random);
    BOOST_TEST(ReadFile(path) == ReadFile(directory / "columns1"));
  }
}

// Numbers at both ends of their types, with every width of the range between them.
BOOST_AUTO_TEST_CASE(gives_back_numbers_of_every_width, *StartsNoThread()) {
  auto random = TestRandom();
  Columns columns;
  for (uint32_t width = 0; width <= 64; width += width < 50 ? 7 : 1) {
    const uint64_t mask = width == 0 ? 0 : UINT64_MAX >> (64 - width);
    for (const bool upper : {false, true}) {
      if (columns.schemas.size() > 60) break;
      const auto unsigned_numbers = Make(1100, [&](size_t i) {
        const uint64_t bits = i == 0 ? 0 : i == 1 ? mask : random() & mask;
        return Number(upper ? UINT64_MAX - bits : bits);
      });
      columns.Add(absl::StrFormat("u%d%d", width, upper), DataType::kU64, unsigned_numbers);
      const auto signed_numbers = Make(1100, [&](size_t i) {
        const uint64_t bits = i == 0 ? 0 : i == 1 ? mask : random() & mask;
        return Number(static_cast<int64_t>(upper ? static_cast<uint64_t>(INT64_MAX) - bits
                                                 : static_cast<uint64_t>(INT64_MIN) + bits));
      });
      columns.Add(absl::StrFormat("i%d%d", width, upper), DataType::kI64, signed_numbers);
    }
  }
  RoundTrip(columns, random);
}

BOOST_AUTO_TEST_CASE(values_take_as_few_bits_as_they_may, *StartsNoThread()) {
  auto random = TestRandom();
  constexpr size_t kRows = 8192;
  Columns columns;
  columns.Add("equal", DataType::kI64, Make(kRows, [](size_t) { return Number(int64_t{-7}); }));
  columns.Add("bits", DataType::kU64,
              Make(kRows, [&](size_t) { return Number((uint64_t{1} << 40) + random() % 2); }));
  columns.Add("prices", DataType::kF64, Make(kRows, [&](size_t) {
                return Number(static_cast<double>(random() % 100'000) / 100);
              }));
  columns.Add("floats", DataType::kF32, Make(kRows, [&](size_t) {
                return Number(static_cast<double>(static_cast<float>(random() % 1000) / 10.0F));
              }));
  columns.Add("any float", DataType::kF64,
              Make(kRows, [&](size_t) { return Number(static_cast<double>(random()) * 0x1p-61); }));
  columns.Add("countries", DataType::kText, Make(kRows, [&](size_t) {
                return Text(absl::StrFormat("country %d", random() % 200));
              }));
  columns.Add("one length", DataType::kBytes,
              Make(kRows, [&](size_t) { return Text(absl::StrFormat("%016x", random())); }));
  columns.Add("all null", DataType::kText, Make(kRows, [](size_t) { return OwnedValue{}; }));
  const std::vector<uint64_t> bytes = RoundTrip(columns, random);
  const uint64_t directory = kRows / kRowsPerColumnBlock * sizeof(ColumnBlock);
  const double per_row[] = {0, 1.0 / 8, 17.0 / 8, 10.0 / 8, 8, 1.4, 16 + 5.5, 1.0 / 8};
  for (size_t i = 0; i < bytes.size(); ++i) {
    BOOST_TEST(static_cast<double>(bytes[i]) <= static_cast<double>(directory) + per_row[i] * kRows,
               columns.schemas[i].name << " takes " << bytes[i]);
  }
}

// Columns of text that begin with few values and get many, and the reverse; near-unique ones.
BOOST_AUTO_TEST_CASE(gives_back_text_however_often_it_repeats) {
  auto random = TestRandom();
  const size_t rows = FewerSanitized(200'000, 4, 10);
  Columns columns;
  const auto add = [&](const char* name, const Made& make) {
    columns.Add(name, DataType::kText, Make(rows, make));
  };
  add("few, then many", [&](size_t i) {
    return Text(absl::StrFormat("%d", i < rows / 2 ? random() % 10 : random()));
  });
  add("many, then few", [&](size_t i) {
    return Text(absl::StrFormat("%d", i < rows / 2 ? random() : random() % 10));
  });
  add("unique", [](size_t i) { return Text(absl::StrFormat("%032d", i)); });
  add("near 65,536", [&](size_t) { return Text(absl::StrFormat("value %d", random() % 66'000)); });
  add("ascending", [](size_t i) { return Text(absl::StrFormat("%d", i / 3)); });
  add("empty", [](size_t) { return Text(""); });
  add("long and few",
      [&](size_t) { return Text(std::string(500, static_cast<char>(random() % 90))); });
  const std::vector<uint64_t> bytes = RoundTrip(columns, random);
  BOOST_TEST(bytes[2] < rows * 33 + 200'000);  // nothing per value but its bytes
  BOOST_TEST(bytes[5] < rows / 8);
  BOOST_TEST(bytes[6] < rows + 100'000);
}

BOOST_AUTO_TEST_CASE(gives_back_strings_of_any_bytes_and_length) {
  auto random = TestRandom();
  Columns columns;
  const std::string prefix(300, 'p');
  columns.Add("long", DataType::kBytes, Make(1030, [&](size_t i) {
                if (i == 500) return Text(std::string(3'000'000, 'x'));
                return random() % 20 == 0 ? OwnedValue{} : Text(std::string(random() % 3000, 'y'));
              }));
  columns.Add("common prefix", DataType::kBytes,
              Make(1030, [&](size_t) { return Text(prefix + static_cast<char>(random())); }));
  columns.Add("zeros", DataType::kText,
              Make(1030, [&](size_t) { return Text(std::string(random() % 4, '\0')); }));
  columns.Add("longest", DataType::kText, Make(1030, [&](size_t i) {
                return Text(i == 7 ? std::string(KeyCodec::kMaxKeyBytes, 'z') : "");
              }));
  RoundTrip(columns, random);
}

BOOST_AUTO_TEST_CASE(gathers_integers_without_columns) {
  auto random = TestRandom();
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  const Columns columns = RandomColumns(3000, 10, random);
  WriteColumns(path, columns, 5000, random);
  const ColumnFile file = RequireOk(OpenColumnFile(path, VerifyLevel::kFull));
  std::vector<RowId> rows(1000);
  for (RowId& row : rows) row = static_cast<RowId>(random() % 3000);
  std::vector<uint64_t> numbers(rows.size());
  std::vector<int64_t> signed_numbers(rows.size());
  for (size_t c = 0; c < columns.schemas.size(); ++c) {
    const DataType type = columns.schemas[c].type;
    const absl::Status s = file.table.GatherIntegers(c, rows, absl::MakeSpan(numbers));
    const absl::Status t = file.table.GatherIntegers(c, rows, absl::MakeSpan(signed_numbers));
    BOOST_TEST(s.ok() == IsUnsigned(type));
    BOOST_TEST(t.ok() == IsSigned(type));
    for (size_t i = 0; i < rows.size(); ++i) {
      const DataValue value = columns.values[c][rows[i]].view();
      const bool null = std::holds_alternative<std::monostate>(value);
      if (s.ok()) BOOST_REQUIRE(numbers[i] == (null ? 0 : std::get<uint64_t>(value)));
      if (t.ok()) BOOST_REQUIRE(signed_numbers[i] == (null ? 0 : std::get<int64_t>(value)));
    }
  }
  BOOST_TEST(Mentions(file.table.GatherIntegers(0, rows, absl::Span<uint64_t>()), "room for 1000"));
}

BOOST_AUTO_TEST_CASE(says_what_is_wrong_with_a_request) {
  auto random = TestRandom();
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  WriteColumns(path, RandomColumns(10, 0, random), 5000, random);
  const ColumnTable table = RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table;
  ColumnValues values(DataType::kU8);
  values.AppendNumber<uint8_t>(1);
  const RowId rows[] = {3, 10, 11};
  const absl::Status status = table.Gather(0, rows, &values);
  BOOST_TEST(absl::IsOutOfRange(status));
  BOOST_TEST(Mentions(status, "there is no row 10, expected one of 10"));
  BOOST_TEST(absl::IsOutOfRange(table.Gather(0, {kNoRow}, &values)));
  BOOST_TEST(Mentions(table.Gather(12, {0}, &values), "there is no column 12"));
  BOOST_TEST(Mentions(table.Gather(1, {0}, &values), "column 'u16' is of u16, expected u8"));
  BOOST_TEST(absl::IsOutOfRange(table.Read(0, 5, 11, &values)));
  BOOST_TEST(absl::IsOutOfRange(table.Read(0, 6, 5, &values)));
  BOOST_TEST(absl::IsOutOfRange(table.Read(0, UINT64_MAX, UINT64_MAX, &values)));
  RequireOk(table.Gather(0, {}, &values));
  RequireOk(table.Read(0, 10, 10, &values));
  BOOST_TEST(values.size() == 1u);
  BOOST_TEST(!table.Find("no such column").has_value());
  BOOST_TEST(ColumnTable().rows() == 0u);
  BOOST_TEST(ColumnTable().columns().empty());
  BOOST_TEST(absl::IsInvalidArgument(ColumnTable().Gather(0, {}, &values)));
}

BOOST_AUTO_TEST_CASE(refuses_columns_that_are_none) {
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  const auto refusal = [&](const std::vector<ColumnSchema>& columns) {
    const absl::Status status = ColumnFileWriter::Create(path, columns).status();
    BOOST_TEST(absl::IsInvalidArgument(status));
    BOOST_TEST(!std::filesystem::exists(path));
    return status;
  };
  BOOST_TEST(Mentions(refusal({}), "expected 1 to 64 columns, found 0"));
  std::vector<ColumnSchema> many;
  for (int i = 0; i < 65; ++i) many.push_back({std::to_string(i), DataType::kU8});
  BOOST_TEST(Mentions(refusal(many), "found 65"));
  BOOST_TEST(Mentions(refusal({{"a", DataType::kU8}, {"a", DataType::kU16}}), "two columns 'a'"));
  BOOST_TEST(Mentions(refusal({{"", DataType::kU8}}), "a name of 1 to 65536 bytes"));
  many.pop_back();
  auto random = TestRandom();
  Columns columns;
  for (const ColumnSchema& schema : many)
    columns.Add(schema.name, schema.type, {Number(uint64_t{7})});
  RoundTrip(columns, random);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_finished_is_removed) {
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  const std::vector<ColumnSchema> schemas = {{"a", DataType::kU8}, {"b", DataType::kText}};
  {
    const auto writer = RequireOk(ColumnFileWriter::Create(path, schemas));
    BOOST_TEST(absl::IsAlreadyExists(ColumnFileWriter::Create(path, schemas).status()));
    const std::vector<ColumnValues> one(1, ColumnValues(DataType::kU8));
    const absl::Status status = writer->Append(one);
    BOOST_TEST(Mentions(status, "expected 2 columns, found 1"));
    BOOST_TEST((writer->Finish() == status));
  }
  BOOST_TEST(!std::filesystem::exists(path));
  {
    const auto writer = RequireOk(ColumnFileWriter::Create(path, schemas));
    std::vector<ColumnValues> rows = {ColumnValues(DataType::kU8), ColumnValues(DataType::kText)};
    rows[0].AppendNull();
    BOOST_TEST(Mentions(writer->Append(rows), "column 'b': expected 1 values of text, found 0"));
  }
  BOOST_TEST(!std::filesystem::exists(path));
  {
    const auto writer = RequireOk(ColumnFileWriter::Create(path, schemas));
    RequireOk(writer->Finish());
    BOOST_TEST(writer->size() == std::filesystem::file_size(path));
    BOOST_TEST(writer->header_checksum() ==
               RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).file.header_checksum());
    BOOST_TEST(!writer->Finish().ok());
  }
  BOOST_TEST(std::filesystem::exists(path));
  BOOST_TEST(absl::IsNotFound(OpenColumnFile(path + "x", VerifyLevel::kFull).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
