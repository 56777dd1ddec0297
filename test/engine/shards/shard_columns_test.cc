// Included columns of a sharded index: the same results as of an unsharded one.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_columns_test)
namespace {

// Rows are "key|number|float|text"; all fields except the key may be missing.
constexpr std::string_view kColumns =
    "include(number=value.field('|',1):i64,float=value.field('|',2):f64,"
    "text=value.field('|',3):text)";

std::string SpecOf(std::string_view key) {
  return absl::StrFormat("%s,%s", key, kColumns);
}

std::string SomeRow(std::mt19937_64* random) {
  std::string row = std::to_string((*random)() % 50);
  if ((*random)() % 4 == 0) return row;
  row += absl::StrFormat("|%d", static_cast<int64_t>((*random)()));
  if ((*random)() % 4 == 0) return row;
  static constexpr const char* kFloats[] = {"nan", "-0", "0", "inf", "-inf", "1.5"};
  row += absl::StrFormat("|%s", kFloats[(*random)() % 6]);
  if ((*random)() % 4 == 0) return row;
  return row + "|" + std::string((*random)() % 40, static_cast<char>('a' + (*random)() % 3));
}

// A row's columns as one text, for comparisons.
Strings RowTexts(const std::vector<ColumnValues>& columns) {
  Strings rows(columns.empty() ? 0 : columns[0].size());
  for (const ColumnValues& column : columns) {
    BOOST_REQUIRE(column.size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (column.is_null(i)) {
        rows[i] += " null";
      } else if (column.type() == DataType::kText) {
        rows[i] += " '" + std::string(column.bytes(i)) + "'";
      } else if (column.type() == DataType::kI64) {
        rows[i] += absl::StrFormat(" %d", column.numbers<int64_t>()[i]);
      } else {
        const double number = column.numbers<double>()[i];
        rows[i] += absl::StrFormat(" %s%g", std::signbit(number) ? "-" : "", std::abs(number));
      }
    }
  }
  return rows;
}

// Every entry's key, primary key and columns, in order.
Strings Everything(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  options.columns = {"text", "number", "float"};
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  Strings rows = RowTexts(matches.columns);
  BOOST_REQUIRE_EQUAL(rows.size(), matches.row_ids.size());

  // Columns of the rows by their ids are the same.
  std::vector<ColumnValues> columns;
  RequireOk(index.Columns(matches, options.columns, &columns));
  BOOST_REQUIRE(RowTexts(columns) == rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = *index.codec().Format(matches.keys, i) + "=" + std::string(primary_keys[i]) + rows[i];
  }
  return rows;
}

BOOST_AUTO_TEST_CASE(columns_are_those_of_one_index) {
  std::mt19937_64 random = TestRandom();
  // more than a block, and more than a step
  const int rows = kUnderAsan || kUnderTsan ? 100 : 9000;
  for (const int some : {0, 1, rows}) {
    TestDatabase db;
    for (int i = 0; i < some; ++i) db.Put("row" + std::to_string(i), SomeRow(&random));
    for (const char* key : {"value.field('|',0):u32", "value.field('|',0):text"}) {
      const auto plain = Build(db, SpecOf(key));
      const Strings expected = Everything(*plain);
      for (const auto& [shards, segments] : {std::pair{1u, 1u}, {3u, 1u}, {5u, 4u}}) {
        BOOST_TEST_CONTEXT(some << " rows by " << key << ", " << shards << " shards") {
          const auto index = BuildInShards(db, SpecOf(key), shards, segments);
          BOOST_TEST((Everything(*index) == expected));
          RequireOk(index->Verify());
          Strings differences;
          RequireOk(index->VerifyAgainst(*db.Source(), 10, &differences));
          BOOST_TEST(differences == Strings(), boost::test_tools::per_element());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(points_pages_and_other_columns) {
  std::mt19937_64 random = TestRandom();
  TestDatabase db;
  for (int i = 0; i < 300; ++i) db.Put("row" + std::to_string(i), SomeRow(&random));
  const std::string spec = SpecOf("value.field('|',0):u32");
  const auto plain = Build(db, spec), index = BuildInShards(db, spec, 4);
  QueryOptions options;
  options.columns = {"number"};
  const std::vector<uint32_t> keys = {49, 0, 7, 7, 1000, 25};
  FindResult found, expected;
  RequireOk(index->Find(keys, &found, options));
  RequireOk(plain->Find(keys, &expected, options));
  BOOST_TEST((found.offsets == expected.offsets));
  BOOST_TEST((RowTexts(found.columns) == RowTexts(expected.columns)));
  RequireOk(index->Find(keys, &found));
  BOOST_TEST(found.columns.empty());

  options.limit = 7;
  RequireOk(index->Scan(RangeBatch::Everything(PhysicalType::kU32), &found, options));
  RequireOk(plain->Scan(RangeBatch::Everything(PhysicalType::kU32), &expected, options));
  BOOST_TEST((RowTexts(found.columns) == RowTexts(expected.columns)));

  options.columns = {"none"};
  const absl::Status unknown = index->Find(keys, &found, options);
  BOOST_TEST(absl::IsInvalidArgument(unknown), unknown);
  BOOST_TEST(unknown.message().find("number, float, text") != std::string::npos, unknown);
  options.columns = {"number"};
  std::vector<uint64_t> counts(1);
  BOOST_TEST(absl::IsInvalidArgument(
      index->Count(RangeBatch::Everything(PhysicalType::kU32), absl::MakeSpan(counts), options)));
}

BOOST_AUTO_TEST_CASE(row_ids_contain_their_shards) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i) db.Put("row" + std::to_string(i), std::to_string(i) + "|1");
  const std::string spec = SpecOf("value.field('|',0):u32");
  const auto index = BuildInShards(db, spec, 3), plain = Build(db, spec);
  const GlobalRowId row = MakeGlobalRowId(1, 0), no_row = MakeGlobalRowId(3, 0);
  const Strings number = {"number"};
  std::vector<ColumnValues> columns;
  BOOST_TEST(absl::IsOutOfRange(index->Columns({no_row}, number, &columns)));
  BOOST_TEST(absl::IsOutOfRange(plain->Columns({row}, number, &columns)));
  RequireOk(index->Columns({row}, number, &columns));
  BOOST_TEST(columns[0].numbers<int64_t>()[0] == 1);
  RequireOk(index->Columns({}, number, &columns));
  BOOST_TEST(columns.size() == 1u);
  BOOST_TEST(columns[0].empty());
}

BOOST_AUTO_TEST_CASE(sources_are_caught_up_with_their_columns) {
  std::mt19937_64 random = TestRandom();
  std::vector<TestDatabase> databases(2);
  const std::string path = databases[0].Beside("sharded");
  std::filesystem::create_directory(path);
  Strings names;
  for (uint32_t s = 0; s < 2; ++s) {
    for (int i = 0; i < 60; ++i) databases[s].Put("row" + std::to_string(i), SomeRow(&random));
    names.push_back(ShardDirectoryName(s));
    RequireOk(SecondaryIndex::Build(*databases[s].Source(), Spec(SpecOf("value.field('|',0):u32")),
                                    path + "/" + names.back())
                  .status());
  }
  RequireOk(PublishSources(names, path, {}));
  const auto index = RequireOk(SecondaryIndex::Open(path, ForTests()));
  databases[1].Put("row3", "7|77|1|new");
  databases[1].Put("row99", "7|78");
  databases[1].Delete("row4");
  RequireOk(index->CatchUp(*databases[1].Source()));

  Strings expected, found = Everything(*index);
  for (TestDatabase& db : databases) {
    const Strings all = Everything(*Build(db, SpecOf("value.field('|',0):u32")));
    expected.insert(expected.end(), all.begin(), all.end());
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  BOOST_TEST((found == expected));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
