// Live indexes that include columns: queries see the current values.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/indexed_db.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_columns_test)
namespace {

// Rows are "key|number"; the number may be missing.
constexpr std::string_view kSpec =
    "by=value.field('|',0):u32,include(number=value.field('|',1):i64,whole=value:text)";

// Primary key -> value, from the index's columns; checks that both columns are of one state.
std::map<std::string, std::string> Values(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  options.columns = {"number", "whole"};
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    const std::string whole(matches.columns[1].bytes(i));
    std::string expected = std::to_string(matches.keys.u32(i));
    if (!matches.columns[0].is_null(i)) {
      expected += "|" + std::to_string(matches.columns[0].numbers<int64_t>()[i]);
    }
    BOOST_REQUIRE(whole == expected);
    values[std::string(primary_keys[i])] = whole;
  }
  return values;
}

std::map<std::string, std::string> Values(IndexedDatabase& db) {
  return Values(*RequireOk(db->Pin("by")));  // since compactions change row ids
}

BOOST_AUTO_TEST_CASE(a_query_sees_the_values_written_before_it) {
  IndexedDatabase db;
  auto random = TestRandom();
  std::map<std::string, std::string> model;
  const auto change = [&] {
    const std::string key = absl::StrFormat("row%d", random() % 40);
    if (random() % 5 == 0) {
      RequireOk(db->Delete({}, key));
      model.erase(key);
      return;
    }
    std::string value = std::to_string(random() % 10);
    if (random() % 4 != 0) value += absl::StrFormat("|%d", static_cast<int64_t>(random()));
    db.Put(key, value);
    model[key] = value;
  };
  for (int i = 0; i < 50; ++i) change();
  db.Create(kSpec);
  BOOST_TEST((Values(db) == model));
  for (int round = 0; round < 60; ++round) {
    for (size_t i = random() % 6; i > 0; --i) change();
    BOOST_TEST((Values(db) == model));
    const auto pinned = round % 7 == 0 ? RequireOk(db->Pin("by")) : nullptr;
    const auto before = model;
    if (round % 10 == 9) RequireOk(db->CompactIndex("by"));
    if (round % 20 == 19) db.Reopen(), RequireOk(db->WaitUntilReady("by"));
    change();
    if (pinned != nullptr && round % 20 != 19) BOOST_TEST((Values(*pinned) == before));
    BOOST_TEST((Values(db) == model));
  }
}

BOOST_AUTO_TEST_CASE(lookup_returns_columns_beside_primary_keys) {
  IndexedDatabase db;
  db.Put("a", R"({"tags":["x","y"],"price":3})");
  db.Put("b", R"({"tags":["y"]})");
  RequireOk(
      db->CreateIndex("tag = value.json('/tags'):text, include(price = value.json('/price'):i64)"));
  RequireOk(db->WaitUntilReady("tag"));
  db.Put("c", R"({"tags":["z"],"price":-1})");
  LookupOptions options;
  options.columns = {"price"};
  const auto prices = [&](const KeyQuery& query) {
    const FoundKeys found = RequireOk(db->Lookup("tag", query, options));
    BOOST_REQUIRE(found.columns().size() == 1u);
    BOOST_REQUIRE(found.columns()[0].size() == found.size());
    std::string text;
    for (size_t i = 0; i < found.size(); ++i) {
      text += std::string(found[i]) + "=";
      const ColumnValues& price = found.columns()[0];
      text += price.is_null(i) ? "null " : std::to_string(price.numbers<int64_t>()[i]) + " ";
    }
    return text;
  };
  BOOST_TEST(prices("y") == "a=3 b=null ");
  BOOST_TEST(prices({"z", "none", "x"}) == "c=-1 a=3 ");
  BOOST_TEST(prices(KeyQuery::Everything()) == "a=3 b=null c=-1 ");  // each row once
  options.order = Order::kDescending;
  options.limit = 2;
  BOOST_TEST(prices(KeyQuery::AtLeast("y")) == "c=-1 b=null ");
  BOOST_TEST(RequireOk(db->Lookup("tag", "y")).columns().empty());
  BOOST_TEST(FoundKeys().columns().empty());

  const absl::Status rows = db->LookupRows("tag", "y", options).status();
  BOOST_TEST(absl::IsInvalidArgument(rows), rows);
  options.columns = {"cost"};
  const absl::Status unknown = db->Lookup("tag", "y", options).status();
  BOOST_TEST(absl::IsInvalidArgument(unknown), unknown);
  BOOST_TEST(unknown.message().find("only price") != std::string::npos, unknown);
}

BOOST_AUTO_TEST_CASE(readers_see_whole_rows_while_they_change) {
  IndexedDatabase db;
  for (int i = 0; i < 50; ++i) db.Put("row" + std::to_string(i), absl::StrFormat("%d|0", i % 5));
  db.Create(kSpec);
  std::atomic<bool> stop = false;
  std::atomic<size_t> wrong = 0, scans = 0;
  std::thread reader([&] {
    while (!stop) {
      FindResult matches;
      QueryOptions options;
      options.columns = {"number", "whole"};
      const auto index = db->Index("by");
      if (!index.ok() ||
          !(*index)->Scan(RangeBatch::Everything((*index)->kind()), &matches, options).ok() ||
          matches.columns[1].size() != matches.row_ids.size()) {
        ++wrong;
        continue;
      }
      ++scans;
      for (size_t i = 0; i < matches.row_ids.size(); ++i) {
        const std::string_view whole = matches.columns[1].bytes(i);
        const std::string number = std::to_string(matches.columns[0].numbers<int64_t>()[i]);
        if (whole.substr(whole.find('|') + 1) != number) ++wrong;
      }
    }
  });
  auto random = TestRandom(1);
  for (size_t i = 0; i < FewerSanitized(3000, 4, 10); ++i) {
    db.Put("row" + std::to_string(random() % 50), absl::StrFormat("%d|%d", random() % 5, i));
    if (i % 500 == 250) RequireOk(db->CompactIndex("by"));
  }
  stop = true;
  reader.join();
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(scans > 0u);
  BOOST_TEST(Values(db).size() == 50u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
