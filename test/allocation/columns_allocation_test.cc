// Every allocation fails in turn while typed columns are written, read and summed.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "index/aggregates/distinct_ranks.h"
#include "index/aggregates/range_extremes.h"
#include "index/aggregates/range_float_sums.h"
#include "index/aggregates/range_sums.h"
#include "index/columns/columns_builder.h"
#include "index/machine/status_macros.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/index/columns/column_files.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
namespace {

class ColumnsFixture {
 public:
  ColumnsFixture() {
    auto random = TestRandom();
    columns.Add("number", DataType::kI32, RandomValues(DataType::kI32, kRows, 10, random));
    columns.Add("float", DataType::kF64, RandomValues(DataType::kF64, kRows, 10, random));
    columns.Add("text", DataType::kText, RandomValues(DataType::kText, kRows, 10, random));
    values = columns.Piece(0, kRows);
    WriteColumns(directory / "given", columns, 5000, random);
    table = RequireOk(OpenColumnFile(directory / "given", VerifyLevel::kFull)).table;
    for (size_t i = 0; i < kRows; ++i) rows.push_back(static_cast<RowId>(random() % kRows));
  }

  static constexpr size_t kRows = 2500;
  const TemporaryDirectory directory;
  const std::string path = directory / "columns";
  Columns columns;
  std::vector<ColumnValues> values;
  ColumnTable table;
  std::vector<RowId> rows;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(columns_allocation_test, ColumnsFixture)

BOOST_AUTO_TEST_CASE(building_and_writing_leaves_a_file_or_none) {
  for (const FailingNew::How how : kBoth) {
    for (const uint64_t budget : {uint64_t{20'000}, UINT64_MAX}) {
      ColumnsBuilder::Options options;
      options.memory_budget = budget;
      options.spill_directory = directory.path();
      // Created and destroyed outside, since a constructor may throw, like a container's.
      std::unique_ptr<ColumnsBuilder> builder;
      bool finished = false;
      FailEachAllocation(
          how, 100,
          [&] {
            std::filesystem::remove(path);
            builder = std::make_unique<ColumnsBuilder>(columns.schemas, options, 1);
          },
          [&]() -> absl::Status {
            finished = false;
            builder->part(0)->Add(values);
            RETURN_IF_ERROR(builder->part(0)->Finish());
            ASSIGN_OR_RETURN(const auto writer, ColumnFileWriter::Create(path, columns.schemas));
            RETURN_IF_ERROR(builder->Finish(writer.get()));
            finished = true;
            return absl::OkStatus();
          },
          [&] {
            BOOST_REQUIRE(std::filesystem::exists(path) == finished);
            if (!finished) return;
            auto random = TestRandom();
            CheckTable(RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table, columns, random);
          });
    }
  }
}

BOOST_AUTO_TEST_CASE(gathering_appends_all_or_nothing) {
  for (const FailingNew::How how : kBoth) {
    for (size_t column = 0; column < columns.schemas.size(); ++column) {
      ColumnValues gathered(columns.schemas[column].type);
      absl::Status status;
      FailEachAllocation(
          how, 100,
          [&] {
            gathered = ColumnValues(columns.schemas[column].type);
            gathered.AppendNull();
          },
          [&] {
            status = table.Gather(column, rows, &gathered);
            if (status.ok()) status = table.Read(column, 5, 2400, &gathered);
            return status;
          },
          [&] {
            const size_t size = gathered.size();
            BOOST_REQUIRE((size == 1 || size == 1 + kRows || size == 1 + kRows + 2395));
            BOOST_REQUIRE((status.ok() == (size == 1 + kRows + 2395)));
            BOOST_REQUIRE(gathered.is_null(0));
          });
    }
  }
}

BOOST_AUTO_TEST_CASE(appending_leaves_a_column_as_it_was) {
  for (const FailingNew::How how : kBoth) {
    ColumnValues column;
    FailEachAllocation(
        how, 100, [&] { column = ColumnValues(DataType::kText); },
        [&]() -> absl::Status {
          for (const OwnedValue& value : columns.values[2]) {
            RETURN_IF_ERROR(column.Append(value.view()));
          }
          return absl::OkStatus();
        },
        [&] {
          const std::vector<OwnedValue>& all = columns.values[2];
          CheckValues(column,
                      {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(column.size())});
        });
  }
}

BOOST_AUTO_TEST_CASE(aggregates_are_built_or_not) {
  for (const FailingNew::How how : kBoth) {
    FailEachAllocation(
        how, 100, [] {}, [&] { return RangeSums::Build(table, 0, rows, 2).status(); }, [] {});
    FailEachAllocation(
        how, 100, [] {}, [&] { return RangeFloatSums::Build(table, 1, rows, 2).status(); }, [] {});
    FailEachAllocation(
        how, 100, [] {}, [&] { return RangeExtremes::Build(table, 2, rows, 2).status(); }, [] {});
    const SortedRun run = RequireOk(SortedRun::FromUnsorted(absl::MakeConstSpan(rows), {}, 1));
    FailEachAllocation(
        how, 100, [] {}, [&] { return DistinctRanks::Build(run, 2).status(); }, [] {});
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
