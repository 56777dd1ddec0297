// Columns that an index includes (IndexSpec::include): built, caught up, compacted, verified.
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/keys/key_number.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(included_columns_test)
namespace {

// Rows are "key|signed|float|text|tiny"; missing fields at the end are null.
constexpr std::string_view kSpec =
    "by=value.field('|',0):u32,include(signed=value.field('|',1):i64,"
    "float=value.field('|',2):f64,text=value.field('|',3):text,tiny=value.field('|',4):u8)";
const std::vector<std::string> kColumns = {"signed", "float", "text", "tiny"};

// The values of a row in all columns, as text.
std::string Text(const std::vector<ColumnValues>& columns, size_t i) {
  std::string text;
  for (const ColumnValues& column : columns) text += Described(column.value(i)) + ";";
  return text;
}

// "key=primary key: values" for the rows of a scan.
Strings Entries(const SecondaryIndex& index, const QueryOptions& options) {
  FindResult matches;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  const Strings primary_keys = PrimaryKeys(index, matches);
  BOOST_REQUIRE(matches.columns.size() == options.columns.size());
  for (const ColumnValues& column : matches.columns) {
    BOOST_REQUIRE(column.size() == matches.row_ids.size());
  }
  Strings entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(*index.codec().Format(matches.keys, i) + "=" + primary_keys[i] + ": " +
                      Text(matches.columns, i));
  }
  return entries;
}

QueryOptions AllColumns() {
  QueryOptions options;
  options.with_keys = true;
  options.columns = kColumns;
  return options;
}

Strings EntriesWithColumns(const SecondaryIndex& index) {
  return Entries(index, AllColumns());
}

// A row's value, with fields missing at random, and its text in Entries.
struct Row {
  std::string value;
  std::string key;
  std::string columns;
};
Row RandomRow(std::mt19937_64& random) {
  Row row;
  const auto number = static_cast<int64_t>(random() % 7 == 0 ? random() : random() % 5) - 2;
  const double real = random() % 5 == 0 ? -0.0 : static_cast<double>(random() % 100) / 4;
  const std::string text(random() % 4 == 0 ? random() % 300 : random() % 3, 'x');
  row.key = std::to_string(random() % 50);
  const std::string fields[] = {Described(DataValue(number)), Described(DataValue(real)), text,
                                std::to_string(random() % 256)};
  row.value = row.key;
  const size_t there = random() % 5;
  for (size_t i = 0; i < 4; ++i) {
    if (i < there) row.value += "|" + fields[i];
    const std::string shown = i == 2 ? Described(std::string_view(fields[i])) : fields[i];
    row.columns += (i < there ? shown : "null") + ";";
  }
  return row;
}

// The rows of a database, and the expected contents of an index with kSpec.
struct Model {
  void Put(TestDatabase& db, const std::string& key, const Row& row) {
    db.Put(key, row.value);
    rows[key] = row;
  }
  void Delete(TestDatabase& db, const std::string& key) {
    db.Delete(key);
    rows.erase(key);
  }
  Strings Entries() const {
    std::vector<std::pair<std::pair<int, std::string>, std::string>> sorted;
    for (const auto& [key, row] : rows) {
      sorted.push_back({{std::stoi(row.key), key}, row.key + "=" + key + ": " + row.columns});
    }
    std::sort(sorted.begin(), sorted.end());
    Strings entries;
    for (const auto& entry : sorted) entries.push_back(entry.second);
    return entries;
  }

  std::map<std::string, Row> rows;
};

void Check(TestDatabase& db, const SecondaryIndex& index, const Model& model) {
  BOOST_TEST(EntriesWithColumns(index) == model.Entries(), boost::test_tools::per_element());
  Strings differences;
  RequireOk(index.VerifyAgainst(*db.Source(), 10, &differences));
  BOOST_TEST(differences == Strings(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(queries_return_columns) {
  TestDatabase db;
  db.Put("a", "7|-3|0.5|one|9");
  db.Put("b", "7|4|-0||0");
  db.Put("c", "5");
  const auto index = Build(db, kSpec);
  BOOST_TEST(EntriesWithColumns(*index) ==
                 (Strings{"5=c: null;null;null;null;", "7=a: -3;0.5;'one';9;", "7=b: 4;-0;'';0;"}),
             boost::test_tools::per_element());

  FindResult matches;
  QueryOptions options;
  options.columns = {"tiny", "text", "tiny"};
  const std::vector<uint32_t> keys = {7, 6, 5};
  RequireOk(index->Execute(Batch::Find(keys, &matches, options)));
  BOOST_REQUIRE(matches.columns.size() == 3u);
  BOOST_CHECK(matches.columns[0].type() == DataType::kU8);
  BOOST_TEST(Text(matches.columns, 0) == "9;'one';9;");
  BOOST_TEST(Text(matches.columns, 1) == "0;'';0;");
  BOOST_TEST(Text(matches.columns, 2) == "null;null;null;");

  // Without columns there are none, also in an object that had some.
  RequireOk(index->Execute(Batch::Find(keys, &matches)));
  BOOST_TEST(matches.columns.empty());

  std::vector<ColumnValues> columns;
  const std::vector<std::string> names = {"signed"};
  RequireOk(index->Columns({2, 0, 0}, names, &columns));
  BOOST_TEST(Text(columns, 0) + Text(columns, 1) + Text(columns, 2) == "null;-3;-3;");
  RequireOk(index->Columns({}, names, &columns));
  BOOST_TEST(columns.at(0).empty());
}

BOOST_AUTO_TEST_CASE(descending_scans_and_pages_return_the_columns_of_their_rows) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i)
    db.Put("k" + std::to_string(10 + i), absl::StrFormat("%d|%d", i, -i));
  const auto index = Build(db, kSpec);
  QueryOptions options = AllColumns();
  options.order = Order::kDescending;
  options.limit = 3;
  RangeBatch ranges = RangeBatch::Everything(index->kind());
  std::string cursor;
  int next = 19;
  do {
    if (!cursor.empty()) ranges.after = absl::MakeConstSpan(&cursor, 1);
    FindResult matches;
    RequireOk(index->Scan(ranges, &matches, options));
    for (size_t i = 0; i < matches.row_ids.size(); ++i, --next) {
      BOOST_CHECK(matches.columns[0].value(i) == DataValue(int64_t{-next}));
    }
    cursor = matches.cursors.at(0);
  } while (!cursor.empty());
  BOOST_TEST(next == -1);
}

BOOST_AUTO_TEST_CASE(what_is_not_included_is_refused) {
  TestDatabase db;
  db.Put("a", "7|-3");
  const auto index = Build(db, kSpec);
  FindResult matches;
  QueryOptions options;
  options.columns = {"price"};
  const absl::Status status = index->Scan(RangeBatch::Everything(index->kind()), &matches, options);
  BOOST_TEST(absl::IsInvalidArgument(status));
  BOOST_TEST(absl::StrContains(status.message(), "no column 'price', only signed, float, text"));
  std::vector<ColumnValues> columns;
  const std::vector<std::string> names = {"tiny"};
  BOOST_TEST(absl::IsOutOfRange(index->Columns({1}, names, &columns)));
  const std::vector<uint32_t> keys = {7};
  RowId row = 0;
  options.columns = {"tiny"};
  BOOST_TEST(absl::IsInvalidArgument(
      index->Execute(Batch::FindFirst(keys, absl::MakeSpan(&row, 1), options))));

  const auto plain = RequireOk(
      SecondaryIndex::Build(*db.Source(), Spec("value.field('|',0):u32"), db.Beside("plain")));
  BOOST_TEST(absl::IsInvalidArgument(plain->Columns({0}, names, &columns)));
}

BOOST_AUTO_TEST_CASE(a_row_that_cannot_be_read_fails_or_is_passed_over) {
  TestDatabase db;
  db.Put("a", "7|-3|0.5|one|9");
  db.Put("b", "7|-3|0.5|one|256");
  const auto source = db.Source();
  const absl::Status status =
      SecondaryIndex::Build(*source, Spec(kSpec), db.Beside("failed")).status();
  BOOST_TEST(absl::IsInvalidArgument(status));
  BOOST_TEST(absl::StrContains(status.message(), "row 'b': column 'tiny' (value.field('|',4):u8)"),
             status);
  const auto index = Build(db, std::string(kSpec) + ",on_error=skip");
  BOOST_TEST(EntriesWithColumns(*index) == Strings{"7=a: -3;0.5;'one';9;"},
             boost::test_tools::per_element());
  // A row without a key has no entry, so its columns are never read.
  db.Delete("b");
  db.Put("c", "");
  db.Put("d", "8|1|x");
  RequireOk(index->CatchUp(*db.Source()).status());
  BOOST_TEST(EntriesWithColumns(*index) == Strings{"7=a: -3;0.5;'one';9;"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(several_values_in_a_row_are_no_column) {
  TestDatabase db;
  db.Put("a", R"({"k": [1, 2], "c": 5})");
  db.Put("b", R"({"k": 3, "c": []})");
  constexpr std::string_view kJson = "value.json('/k'):u32,include(c=value.json('/c'):i16)";
  const auto index = Build(db, kJson);
  QueryOptions options;
  options.with_keys = true;
  options.columns = {"c"};
  BOOST_TEST(Entries(*index, options) == (Strings{"1=a: 5;", "2=a: 5;", "3=b: null;"}),
             boost::test_tools::per_element());
  db.Put("c", R"({"k": 3, "c": [1, 2]})");
  BOOST_TEST(absl::StrContains(index->CatchUp(*db.Source()).status().message(),
                               "column 'c' (value.json('/c'):i16): expected one value in a row"));
}

BOOST_AUTO_TEST_CASE(values_follow_the_database) {
  TestDatabase db;
  auto random = TestRandom();
  Model model;
  const auto key = [&] { return "row" + std::to_string(random() % 300); };
  for (int i = 0; i < 200; ++i) model.Put(db, key(), RandomRow(random));
  auto index = Build(db, kSpec);
  Check(db, *index, model);
  for (int round = 0; round < 12; ++round) {
    for (size_t i = 1 + random() % 60; i > 0; --i) {
      const std::string at = key();
      switch (random() % 4) {
        case 0:
          model.Delete(db, at);
          break;
        case 1:
          if (const auto row = model.rows.find(at); row != model.rows.end()) {
            Row changed = RandomRow(random);  // other values under the same key
            changed.value = row->second.key + changed.value.substr(changed.key.size());
            changed.key = row->second.key;
            model.Put(db, at, changed);
            break;
          }
          [[fallthrough]];
        default:
          model.Put(db, at, RandomRow(random));
      }
    }
    RequireOk(index->CatchUp(*db.Source()).status());
    Check(db, *index, model);
    if (round % 4 == 3) {
      RequireOk(index->Compact());
      Check(db, *index, model);
      BOOST_TEST(index->Stats()->delta.added_entries == 0u);
    }
    if (round % 3 == 1) {
      index = RequireOk(SecondaryIndex::Open(db.Beside("index")));
      Check(db, *index, model);
      RequireOk(index->Verify());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_value_alone_is_a_difference) {
  TestDatabase db;
  db.Put("a", "7|-3");
  db.Put("b", "8|-3");
  const auto index = Build(db, kSpec);
  db.Put("b", "8|-4");
  Strings differences;
  RequireOk(index->VerifyAgainst(*db.Source(), 10, &differences));
  BOOST_TEST(differences ==
                 Strings{"the index has other values of row 'b' in its columns than the database"},
             boost::test_tools::per_element());
  RequireOk(index->CatchUp(*db.Source()).status());
  differences.clear();
  RequireOk(index->VerifyAgainst(*db.Source(), 10, &differences));
  BOOST_TEST(differences == Strings(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(several_indexes_of_a_build_include_their_own) {
  TestDatabase db;
  db.Put("a", "7|-3|0.5|one|9");
  db.Put("b", "8");
  const std::vector<BuildTarget> targets = {
      {Spec("value.field('|',0):u32,include(t=value.field('|',3):text)"), db.Beside("one")},
      {Spec("value.field('|',0):u64"), db.Beside("two")},
      {Spec("key:text,include(k=value.field('|',0):u8)"), db.Beside("three")}};
  RequireOk(SecondaryIndex::BuildAll(*db.Source(), targets).status());
  QueryOptions options;
  options.with_keys = true;
  options.columns = {"t"};
  BOOST_TEST(Entries(*RequireOk(SecondaryIndex::Open(db.Beside("one"))), options) ==
                 (Strings{"7=a: 'one';", "8=b: null;"}),
             boost::test_tools::per_element());
  options.columns = {"k"};
  BOOST_TEST(Entries(*RequireOk(SecondaryIndex::Open(db.Beside("three"))), options) ==
                 (Strings{"a=a: 7;", "b=b: 8;"}),
             boost::test_tools::per_element());
  options.columns = {};
  BOOST_TEST(Entries(*RequireOk(SecondaryIndex::Open(db.Beside("two"))), options).size() == 2u);
}

BOOST_AUTO_TEST_CASE(no_rows_have_columns_too) {
  TestDatabase db;
  const auto index = Build(db, kSpec);
  BOOST_TEST(EntriesWithColumns(*index).empty());
  db.Put("a", "7|-3");
  RequireOk(index->CatchUp(*db.Source()).status());
  BOOST_TEST(EntriesWithColumns(*index) == Strings{"7=a: -3;null;null;null;"},
             boost::test_tools::per_element());
  db.Delete("a");
  RequireOk(index->CatchUp(*db.Source()).status());
  RequireOk(index->Compact());
  BOOST_TEST(EntriesWithColumns(*index).empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
