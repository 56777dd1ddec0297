#include "index/columns/columns_builder.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/index/columns/column_files.h"
#include "test/index/columns/failing_spills.h"
#include "test/index/columns/values.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
namespace {

// The rows of `columns` that part p gets: from cuts[p] to cuts[p + 1].
struct PartRows {
  const Columns* columns;
  std::vector<size_t> cuts;
};

// Adds a part's rows one by one or in pieces. In a thread, which Boost.Test must not see.
bool FillPart(const PartRows& rows, size_t p, ColumnsBuilder::Part* part) {
  std::mt19937_64 random(TestSeed() + p);
  const Columns& columns = *rows.columns;
  std::vector<DataValue> row(columns.schemas.size());
  for (size_t at = rows.cuts[p]; at < rows.cuts[p + 1];) {
    if (random() % 4 == 0) {
      const size_t count = std::min<size_t>(rows.cuts[p + 1] - at, random() % 3000);
      if (!part->Add(columns.Piece(at, count))) return false;
      at += count;
      continue;
    }
    for (size_t i = 0; i < row.size(); ++i) row[i] = columns.values[i][at].view();
    if (!part->Add(row)) return false;
    ++at;
  }
  return true;
}

void Fill(ColumnsBuilder* builder, const PartRows& rows, int threads) {
  std::vector<std::thread> scans;
  std::atomic<size_t> next{0};
  std::atomic<int> failures{0};
  for (int t = 0; t < threads; ++t) {
    scans.emplace_back([&] {
      for (size_t p; (p = next++) + 1 < rows.cuts.size();) {
        ColumnsBuilder::Part* part = builder->part(static_cast<int>(p));
        failures += !FillPart(rows, p, part) || !part->Finish().ok();
      }
    });
  }
  for (std::thread& scan : scans) scan.join();
  BOOST_TEST(failures == 0);
}

PartRows Cut(const Columns& columns, size_t parts, std::mt19937_64& random) {
  PartRows rows = {&columns, {0, columns.rows()}};
  for (size_t i = 1; i < parts; ++i) rows.cuts.push_back(random() % (columns.rows() + 1));
  std::sort(rows.cuts.begin(), rows.cuts.end());
  return rows;
}

class Fixture {
 public:
  std::unique_ptr<ColumnFileWriter> Writer(const std::vector<ColumnSchema>& columns) {
    std::filesystem::remove(path);
    return RequireOk(ColumnFileWriter::Create(path, columns));
  }
  ColumnsBuilder::Options Spilling(uint64_t budget) {
    ColumnsBuilder::Options options;
    options.memory_budget = budget;
    options.spill_directory = spills.path();
    return options;
  }

  const TemporaryDirectory directory;
  const TemporaryDirectory spills;
  const std::string path = directory / "columns";
};

BOOST_FIXTURE_TEST_SUITE(columns_builder_test, Fixture)

BOOST_AUTO_TEST_CASE(writes_the_rows_of_all_parts_in_order) {
  auto random = TestRandom();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1024}, FewerSanitized(20'000, 3, 10)}) {
    const Columns columns = RandomColumns(size, 10, random);
    std::string bytes;
    for (const size_t parts : {1, 2, 7}) {
      for (const uint64_t budget : {uint64_t{0}, uint64_t{1} << 20, UINT64_MAX}) {
        const PartRows rows = Cut(columns, parts, random);
        ColumnsBuilder builder(columns.schemas, Spilling(budget), static_cast<int>(parts));
        Fill(&builder, rows, 2);
        BOOST_TEST(builder.rows() == size);
        const auto writer = Writer(columns.schemas);
        RequireOk(builder.Finish(writer.get()));
        // However it was cut and spilled, it is the same file.
        if (bytes.empty()) {
          bytes = ReadFile(path);
          CheckTable(RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table, columns, random);
        }
        BOOST_REQUIRE((ReadFile(path) == bytes));
      }
    }
  }
  BOOST_TEST(std::filesystem::is_empty(spills.path()));
}

BOOST_AUTO_TEST_CASE(takes_long_text_within_a_small_budget) {
  auto random = TestRandom();
  Columns columns;
  std::vector<OwnedValue> text, numbers;
  for (int i = 0; i < 3000; ++i) {
    text.push_back({std::monostate(), true, std::string(random() % 10'000, static_cast<char>(i))});
    numbers.push_back({uint64_t{random() % 100}, false, {}});
  }
  columns.Add("text", DataType::kText, text);
  columns.Add("numbers", DataType::kU32, numbers);
  const PartRows rows = Cut(columns, 3, random);
  ColumnsBuilder builder(columns.schemas, Spilling(2 << 20), 3);
  Fill(&builder, rows, 3);
  const auto writer = Writer(columns.schemas);
  RequireOk(builder.Finish(writer.get()));
  CheckTable(RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table, columns, random);
}

BOOST_AUTO_TEST_CASE(says_what_was_wrong_with_a_row) {
  const std::vector<ColumnSchema> schemas = {{"small", DataType::kU8}, {"text", DataType::kText}};
  const auto refusal = [&](const std::vector<DataValue>& row) {
    ColumnsBuilder builder(schemas, {}, 1);
    BOOST_TEST(builder.part(0)->Add({uint64_t{1}, "good"sv}));
    BOOST_TEST(!builder.part(0)->Add(row));
    BOOST_TEST(!builder.part(0)->Add({uint64_t{1}, "good"sv}));
    const absl::Status status = builder.part(0)->Finish();
    BOOST_TEST(absl::IsInvalidArgument(status));
    const auto writer = Writer(schemas);
    BOOST_TEST((builder.Finish(writer.get()) == status));
    return status;
  };
  BOOST_TEST(Mentions(refusal({uint64_t{256}, "x"sv}), "column 'small': expected a whole number"));
  BOOST_TEST(Mentions(refusal({uint64_t{1}, uint64_t{2}}), "column 'text': expected text, found"));
  BOOST_TEST(Mentions(refusal({uint64_t{1}}), "expected rows of 2 columns, found 1"));
  {
    ColumnsBuilder builder(schemas, {}, 1);
    std::vector<ColumnValues> rows = {ColumnValues(DataType::kU8), ColumnValues(DataType::kBytes)};
    BOOST_TEST(!builder.part(0)->Add(rows));
    BOOST_TEST(Mentions(builder.part(0)->Finish(), "column 'text': expected 0 values of text"));
  }
  {
    ColumnsBuilder builder({}, {}, 1);
    BOOST_TEST(!builder.part(0)->Add(std::vector<DataValue>{}));
    BOOST_TEST(Mentions(builder.part(0)->Finish(), "expected 1 to 64 columns"));
    const auto writer = Writer(schemas);
    BOOST_TEST(Mentions(builder.Finish(writer.get()), "expected 1 to 64 columns"));
  }
}

BOOST_AUTO_TEST_CASE(refuses_misuse_and_says_what_was_wrong) {
  const std::vector<ColumnSchema> schemas = {{"a", DataType::kU8}};
  ColumnsBuilder builder(schemas, {}, 2);
  BOOST_TEST(builder.part(0)->Add({uint64_t{1}}));
  RequireOk(builder.part(0)->Finish());
  BOOST_TEST(absl::IsFailedPrecondition(builder.part(0)->Finish()));
  auto writer = Writer(schemas);
  BOOST_TEST(Mentions(builder.Finish(writer.get()), "part 1 is not finished"));
  RequireOk(builder.part(1)->Finish());
  writer.reset();
  writer = Writer({{"b", DataType::kU8}});
  BOOST_TEST(absl::IsInvalidArgument(builder.Finish(writer.get())));
  writer.reset();
  writer = Writer(schemas);
  RequireOk(builder.Finish(writer.get()));
  BOOST_TEST(absl::IsFailedPrecondition(builder.Finish(writer.get())));
  BOOST_TEST(RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table.rows() == 1u);
}

BOOST_AUTO_TEST_CASE(refuses_more_rows_than_an_index_may_hold) {
  ColumnsBuilder::Options options;
  options.max_rows = 5000;
  ColumnsBuilder builder({{"a", DataType::kU8}}, options, 1);
  uint64_t rows = 0;
  while (rows < 20'000 && builder.part(0)->Add({rows % 200})) ++rows;
  BOOST_TEST(rows < 7000u);
  BOOST_TEST(absl::IsResourceExhausted(builder.part(0)->Finish()));
}

BOOST_AUTO_TEST_CASE(a_budget_without_a_directory_is_an_error) {
  auto random = TestRandom();
  ColumnsBuilder::Options options;
  options.memory_budget = 10'000;
  ColumnsBuilder builder({{"a", DataType::kU64}}, options, 1);
  uint64_t rows = 0;
  while (rows < 20'000 && builder.part(0)->Add({random()})) ++rows;
  BOOST_TEST(Mentions(builder.part(0)->Finish(), "there is no directory to spill them to"));
}

BOOST_AUTO_TEST_CASE(stops_when_it_is_cancelled) {
  auto random = TestRandom();
  const Columns columns = RandomColumns(5000, 10, random);
  ColumnsBuilder builder(columns.schemas, {}, 1);
  Fill(&builder, Cut(columns, 1, random), 1);
  std::atomic<bool> cancelled{true};
  auto writer = Writer(columns.schemas);
  BOOST_TEST(absl::IsCancelled(builder.Finish(writer.get(), &cancelled)));
  writer.reset();
  BOOST_TEST(!std::filesystem::exists(path));
}

// Every write and every read of the spill file fails in turn.
BOOST_AUTO_TEST_CASE(errors_of_the_spill_file_are_returned) {
  auto random = TestRandom();
  const Columns columns = RandomColumns(8000, 10, random);
  const PartRows rows = Cut(columns, 2, random);
  for (const bool damaged : {false, true}) {
    for (int spared = 0;; spared += 3) {
      FailingSpills files(spared, damaged);
      ColumnsBuilder::Options options = Spilling(100'000);
      options.files = &files;
      ColumnsBuilder builder(columns.schemas, options, 2);
      bool filled = true;
      for (int p = 0; p < 2; ++p) {
        filled &= FillPart(rows, static_cast<size_t>(p), builder.part(p));
        filled &= builder.part(p)->Finish().ok();
      }
      auto writer = Writer(columns.schemas);
      const absl::Status status = builder.Finish(writer.get());
      BOOST_TEST((filled || !status.ok()));
      if (status.ok()) {
        BOOST_TEST(!files.failed());
        BOOST_TEST(spared > 3);
        break;
      }
      BOOST_TEST(files.failed());
      BOOST_TEST((damaged ? absl::IsDataLoss(status) || absl::IsResourceExhausted(status)
                          : absl::IsResourceExhausted(status)),
                 status);
      writer.reset();
      BOOST_TEST(!std::filesystem::exists(path));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
