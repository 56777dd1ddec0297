// Groups of rows in special cases: sums that do not fit, NaN and -0, zero bytes, rejected queries.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_group.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_groups_test)
namespace {

std::string TextOf(const DataValue& value) {
  if (const auto* n = std::get_if<uint64_t>(&value)) return absl::StrCat(*n);
  if (const auto* n = std::get_if<int64_t>(&value)) return absl::StrCat(*n);
  if (const auto* n = std::get_if<double>(&value)) {
    return std::isnan(*n) ? "nan" : absl::StrFormat("%s%.17g", std::signbit(*n) ? "" : "+", *n);
  }
  if (const auto* text = std::get_if<std::string_view>(&value))
    return absl::StrFormat("'%s'", *text);
  return "null";
}

std::string LineOf(const std::vector<DataValue>& values) {
  std::string line;
  for (const DataValue& value : values) absl::StrAppend(&line, TextOf(value), " ");
  return line;
}

// One index over rows "city|i64|u64|f64|f32".
struct Numbers {
  explicit Numbers(const std::vector<std::string>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) db.Put(absl::StrCat("k", i), rows[i]);
    index = RequireOk(SecondaryIndex::Build(
        *db.Source(),
        Spec("city = value.field('|',0):text, include(i = value.field('|',1):i64, u = "
             "value.field('|',2):u64, d = value.field('|',3):f64, f = value.field('|',4):f32)"),
        db.Beside("index")));
    group = RequireOk(IndexGroup::Create({{index}}));
  }
  absl::StatusOr<std::string> Ask(const std::vector<Aggregate>& aggregates,
                                  const GroupByOptions& options = {}) const {
    GroupByResult groups;
    const absl::Status s = group->GroupBy(Predicate::All({}), aggregates, options, &groups);
    if (!s.ok()) return s;
    std::string lines;
    for (size_t g = 0; g < groups.size; ++g) {
      std::vector<DataValue> line;
      for (const ColumnValues& key : groups.keys) line.push_back(key.value(g));
      for (const ColumnValues& value : groups.values) line.push_back(value.value(g));
      absl::StrAppend(&lines, g == 0 ? "" : "; ", LineOf(line));
    }
    return lines;
  }

  TestDatabase db;
  std::shared_ptr<SecondaryIndex> index;
  std::shared_ptr<const IndexGroup> group;
};

BOOST_AUTO_TEST_CASE(sums_that_do_not_fit_name_the_group) {
  const Numbers numbers({"a|9223372036854775807|18446744073709551615", "a|1|0", "b|-1|0",
                         "c|-9223372036854775808|1", "c|-1|2"});
  // Intermediate sums may overflow.
  BOOST_TEST(RequireOk(numbers.Ask({Aggregate::Sum("i")})) == "-2 ");
  const auto failed = [&](const Aggregate& aggregate, std::vector<std::string> group_by,
                          std::string_view message) {
    GroupByOptions options;
    options.group_by = std::move(group_by);
    options.limit = 1;
    const absl::Status s = numbers.Ask({aggregate}, options).status();
    BOOST_TEST((s.code() == absl::StatusCode::kOutOfRange));
    BOOST_TEST(absl::StrContains(std::string(s.message()), std::string(message)), s.ToString());
  };
  failed(Aggregate::Sum("i"), {"city"},
         "group 'a': the sum of column 'i' is 9223372036854775808, which does not fit in i64");
  failed(Aggregate::Sum("u"), {},
         "all rows: the sum of column 'u' is 18446744073709551618, which does not fit in u64");
  BOOST_TEST(RequireOk(numbers.Ask({Aggregate::Avg("i")}, {.group_by = {"city"}})) ==
             "'a' +4.6116860184273879e+18 ; 'b' -1 ; 'c' -4.6116860184273879e+18 ");
}

BOOST_AUTO_TEST_CASE(floats_are_ordered_and_grouped_as_keys_are) {
  const Numbers numbers({"a|1|1|nan|nan", "a|1|1|-0.0|-0.0", "a|1|1|0|0", "b|1|1|inf|nan",
                         "b|1|1|-inf|1.5", "c|1|1|-0.0", "c|1|1", "d"});
  BOOST_TEST(RequireOk(numbers.Ask({Aggregate::Min("d"), Aggregate::Max("d"), Aggregate::Sum("d"),
                                    Aggregate::Count("d"), Aggregate::CountDistinct("d")},
                                   {.group_by = {"city"}})) ==
             "'a' -0 nan nan 3 3 ; 'b' -inf +inf nan 2 2 ; 'c' -0 -0 +0 1 1 ; 'd' null null null 0 "
             "0 ");
  BOOST_TEST(RequireOk(numbers.Ask({Aggregate::Count()}, {.group_by = {"f"}})) ==
             "null 3 ; -0 1 ; +0 1 ; +1.5 1 ; nan 2 ");
  BOOST_TEST(RequireOk(numbers.Ask(
                 {Aggregate::Max("f")},
                 {.group_by = {"city"}, .order_by = {{1, Order::kDescending}}, .limit = 3})) ==
             "'a' nan ; 'b' nan ; 'c' null ");
}

BOOST_AUTO_TEST_CASE(text_with_zero_bytes_and_prefixes_of_others) {
  TestDatabase db;
  const std::string texts[] = {
      "", std::string(1, '\0'), std::string("a\0", 2), "a", std::string("a\0b", 3), "ab", "a\xff",
      "a"};
  for (size_t i = 0; i < std::size(texts); ++i) {
    db.Put(absl::StrCat("k", i), absl::StrCat(i % 2, texts[i]));
  }
  const std::shared_ptr<SecondaryIndex> index = RequireOk(SecondaryIndex::Build(
      *db.Source(), Spec("half = value[0:1]:bytes, include(text = value[1:]:bytes)"),
      db.Beside("index")));
  const auto group = RequireOk(IndexGroup::Create({{index}}));
  for (const Order order : {Order::kAscending, Order::kDescending}) {
    std::vector<std::pair<std::string, std::string>> expected;
    std::set<std::pair<std::string, std::string>> once;
    for (size_t i = 0; i < std::size(texts); ++i) once.emplace(texts[i], absl::StrCat(i % 2));
    expected.assign(once.begin(), once.end());
    std::stable_sort(expected.begin(), expected.end(), [&](const auto& a, const auto& b) {
      return order == Order::kAscending ? a.first < b.first : b.first < a.first;
    });
    GroupByOptions options = {.group_by = {"half", "text"}, .order_by = {{1, order}}, .limit = 2};
    std::vector<std::pair<std::string, std::string>> found;
    do {
      GroupByResult groups;
      RequireOk(group->GroupBy(Predicate::All({}), {}, options, &groups));
      for (size_t g = 0; g < groups.size; ++g) {
        found.emplace_back(groups.keys[1].bytes(g), groups.keys[0].bytes(g));
      }
      options.after = groups.cursor;
    } while (!options.after.empty());
    BOOST_TEST((found == expected));
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_says_why) {
  TestDatabase db;
  db.Put("a", R"({"n": 1, "tags": [1, 2], "city": "Oslo"})");
  db.Put("b", R"({"n": 2, "tags": [1], "city": "Oslo"})");
  std::vector<IndexGroup::Member> members;
  for (const char* spec :
       {"n = value.json('/n'):u8, include(city = value.json('/city'):text)",
        "tags = value.json('/tags'):u8",
        "town = value.json('/city'):text, include(city = value.json('/city'):text)"}) {
    members.push_back({RequireOk(SecondaryIndex::Build(
        *db.Source(), Spec(spec), db.Beside(absl::StrCat("index", members.size()))))});
  }
  const auto group = RequireOk(IndexGroup::Create(members));
  const auto refused = [&](const std::vector<Aggregate>& aggregates, const GroupByOptions& options,
                           std::string_view message) {
    GroupByResult groups;
    const absl::Status s = group->GroupBy(Predicate("n", 1), aggregates, options, &groups);
    BOOST_TEST((s.code() == absl::StatusCode::kInvalidArgument));
    BOOST_TEST(absl::StrContains(std::string(s.message()), std::string(message)), s.ToString());
  };
  refused({}, {}, "expected at least one aggregate or column");
  refused({Aggregate::Sum("city")}, {}, "several indexes include a column 'city'");
  refused({Aggregate::Sum("n.city")}, {},
          "sum(n.city): expected a column of numbers, found one of");
  refused({Aggregate::Sum("price")}, {},
          "column 'price'; columns: n.city, town.city, n, tags, town");
  refused({Aggregate::CountDistinct()}, {}, "count_distinct(): expected a column, got none");
  refused({Aggregate::Count()}, {.group_by = {"tags"}}, "several keys of row 'a'");
  refused({Aggregate::Count()}, {.order_by = {{1}}}, "there is no column 1, only 0");
  refused({Aggregate::Count()}, {.after = "x"}, "GroupByOptions::after: expected a cursor of");
  refused({Aggregate::Count()}, {.strategy = WhereStrategy::kWalk}, "walk");
  refused({{static_cast<AggregateFunction>(77), "n"}}, {},
          "expected an aggregate function, got 77");
  GroupByResult groups;
  // A cursor is valid for one query only.
  GroupByOptions page;
  page.group_by = {"n"};
  page.limit = 1;
  RequireOk(group->GroupBy(Predicate::All({}), {Aggregate::Count()}, page, &groups));
  page.after = groups.cursor;
  BOOST_TEST(!page.after.empty());
  RequireOk(group->GroupBy(Predicate::All({}), {Aggregate::Count()}, page, &groups));
  const std::string_view foreign = "expected a cursor of the same query";
  refused({Aggregate::Count()}, page, foreign);
  const auto refused_of_all = [&](const std::vector<Aggregate>& aggregates,
                                  const GroupByOptions& options) {
    const absl::Status s = group->GroupBy(Predicate::All({}), aggregates, options, &groups);
    BOOST_TEST(absl::StrContains(std::string(s.message()), std::string(foreign)), s.ToString());
  };
  refused_of_all({Aggregate::Count("n")}, page);
  GroupByOptions other = page;
  other.group_by = {"town"};
  refused_of_all({Aggregate::Count()}, other);
  other = page;
  other.order_by = {{0, Order::kDescending}};
  refused_of_all({Aggregate::Count()}, other);
  other = {};
  other.limit = 0;
  RequireOk(group->GroupBy(Predicate("n", 1), {Aggregate::Count()}, other, &groups));
  BOOST_TEST((groups.size == 0 && groups.cursor.empty() && groups.values.size() == 1));
  RequireOk(group->GroupBy(Predicate("n", 2), {Aggregate::Sum("tags")}, {}, &groups));
  BOOST_TEST(groups.values[0].numbers<uint64_t>()[0] == 1u);
}

BOOST_AUTO_TEST_CASE(an_order_is_read_from_text) {
  const std::vector<std::string> columns = {"city", "sum(price)", "a desc"};
  const auto order =
      RequireOk(ParseGroupOrder({" sum(price)  DESC ", "city asc", "city"}, columns));
  BOOST_TEST(order.size() == 3u);
  BOOST_TEST((order[0].column == 1 && order[0].order == Order::kDescending));
  BOOST_TEST((order[1].column == 0 && order[1].order == Order::kAscending));
  BOOST_TEST((order[2].column == 0 && order[2].order == Order::kAscending));
  const absl::Status s = ParseGroupOrder({"price"}, columns).status();
  BOOST_TEST((s.code() == absl::StatusCode::kInvalidArgument));
  BOOST_TEST(
      absl::StrContains(std::string(s.message()), "'price' to order by; expected one of city"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
