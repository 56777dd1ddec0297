// Aggregates of ranges and groups: results, rejected queries, memory.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/aggregate.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/aggregate_rows.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(aggregates_test)
namespace {

BOOST_AUTO_TEST_CASE(a_range_has_the_aggregates_of_its_entries) {
  TestDatabase db;
  db.Put("a", "7|0|||-3|0.5|1.5|one|9");
  db.Put("b", "7|0|||4|-0|2|two");
  db.Put("c", "8|0||");
  const auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
  const std::vector<uint32_t> keys = {7, 8, 9};
  std::vector<ColumnValues> values;
  const std::vector<Aggregate> aggregates = {Aggregate::Count(),         Aggregate::CountDistinct(),
                                             Aggregate::Count("signed"), Aggregate::Sum("signed"),
                                             Aggregate::Avg("signed"),   Aggregate::Min("float"),
                                             Aggregate::Sum("float"),    Aggregate::Max("text"),
                                             Aggregate::Sum("tiny"),     Aggregate::Count("text")};
  RequireOk(index->AggregateRanges(RangeBatch::Equal(keys), aggregates, &values));
  std::string text;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (const ColumnValues& column : values) text += Described(column.value(i)) + " ";
  }
  BOOST_TEST(text ==
             "2 1 2 1 0.5 -0 0.5 'two' 9 2 "
             "1 1 0 null null null null null null 0 "
             "0 0 0 null null null null null null 0 ");
  const DataType types[] = {DataType::kU64, DataType::kU64, DataType::kU64, DataType::kI64,
                            DataType::kF64, DataType::kF64, DataType::kF64, DataType::kText,
                            DataType::kU64, DataType::kU64};
  for (size_t i = 0; i < values.size(); ++i) BOOST_CHECK(values[i].type() == types[i]);
}

BOOST_AUTO_TEST_CASE(a_row_counts_for_each_of_its_keys) {
  TestDatabase db;
  db.Put("a", R"({"k": [1, 2, 2], "c": 5})");
  db.Put("b", R"({"k": 3, "c": 7})");
  const auto index = Build(db, "value.json('/k'):u32,include(c=value.json('/c'):i16)");
  std::vector<ColumnValues> values;
  const std::vector<Aggregate> aggregates = {Aggregate::Count(), Aggregate::Sum("c")};
  const auto check = [&](uint64_t count, int64_t sum) {
    RequireOk(index->AggregateRanges(RangeBatch::Everything(index->kind()), aggregates, &values));
    BOOST_CHECK(values[0].value(0) == DataValue(count));
    BOOST_CHECK(values[1].value(0) == DataValue(sum));
  };
  check(3, 17);
  db.Put("a", R"({"k": [1, 2, 4], "c": -5})");
  RequireOk(index->CatchUp(*db.Source()).status());
  check(4, -8);
}

// Removes the first entry of a key from a part of the delta; no other part has the key's group.
BOOST_AUTO_TEST_CASE(a_group_counts_a_key_whose_first_entry_is_gone) {
  TestDatabase db;
  const auto put = [&](std::string_view key, int a, int b) {
    db.Put(key, absl::StrFormat("%d|%d", a, b));
  };
  put("zzz", 250, 250);
  const auto index = Build(db, "value.field('|',0):u8,value.field('|',1):u8");
  put("011", 3, 2);
  put("005", 2, 0);
  put("013", 2, 0);
  put("006", 3, 3);
  put("015", 1, 3);
  RequireOk(index->CatchUp(*db.Source()).status());
  put("005", 0, 0);
  RequireOk(index->CatchUp(*db.Source()).status());
  AggregateGroupsResult groups;
  RequireOk(index->AggregateGroups(RangeBatch::Everything(index->kind()), 1,
                                   {Aggregate::Count(), Aggregate::CountDistinct()}, {}, &groups));
  std::string text;
  for (size_t i = 0; i < groups.offsets[1]; ++i) {
    text += Described(groups.keys[0].value(i)) + ":" + Described(groups.values[0].value(i)) + "," +
            Described(groups.values[1].value(i)) + " ";
  }
  BOOST_TEST(text == "0:1,1 1:1,1 2:1,1 3:2,2 250:1,1 ");
}

BOOST_AUTO_TEST_CASE(sums_that_do_not_fit_are_errors_that_say_which) {
  TestDatabase db;
  db.Put("a", absl::StrFormat("1|0||0|0|0|0||0|%d|%d", INT64_MAX, UINT64_MAX));
  db.Put("b", "2|0||0|0|0|0||0|-5|0");
  db.Put("c", "3|0||0|0|0|0||0|6|1");
  db.Put("d", absl::StrFormat("4|0||0|0|0|0||0|%d|0", INT64_MIN));
  const auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
  const std::vector<uint32_t> lower = {1, 1, 1, 1}, upper = {2, 3, 5, 4};
  std::vector<ColumnValues> values;
  const auto sum = [&](size_t range, const char* column) {
    return index->AggregateRanges(RangeBatch::HalfOpen(lower, upper).Slice(range, 1),
                                  {Aggregate::Sum(column)}, &values);
  };
  RequireOk(sum(0, "wide"));
  BOOST_CHECK(values[0].value(0) == DataValue(INT64_MAX));
  RequireOk(sum(1, "wide"));
  BOOST_CHECK(values[0].value(0) == DataValue(INT64_MAX - 5));
  RequireOk(sum(2, "wide"));  // intermediate results may overflow
  BOOST_CHECK(values[0].value(0) == DataValue(int64_t{0}));
  BOOST_TEST(absl::IsOutOfRange(sum(3, "wide")));
  RequireOk(sum(1, "big"));
  BOOST_CHECK(values[0].value(0) == DataValue(UINT64_MAX));
  BOOST_TEST(absl::IsOutOfRange(sum(3, "big")));
  const absl::Status status = index->AggregateRanges(
      RangeBatch::HalfOpen(lower, upper), {Aggregate::Count(), Aggregate::Sum("wide")}, &values);
  BOOST_TEST(status.message() ==
             "range 3: the sum of column 'wide' is 9223372036854775808, which does not fit in i64");
  RequireOk(index->AggregateRanges(RangeBatch::HalfOpen(lower, upper), {Aggregate::Avg("wide")},
                                   &values));
  BOOST_CHECK(values[0].value(3) == DataValue(9223372036854775808.0 / 3));

  AggregateGroupsResult groups;
  db.Put("e", "1|0||0|0|0|0||0|1|1");
  RequireOk(index->CatchUp(*db.Source()).status());
  const absl::Status of_group = index->AggregateGroups(RangeBatch::Everything(index->kind()), 1,
                                                       {Aggregate::Sum("big")}, {}, &groups);
  BOOST_TEST(absl::StrContains(of_group.message(), "group 1: the sum of column 'big'"), of_group);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_is_an_error) {
  TestDatabase db;
  db.Put("a", "7|0||0|-3");
  const auto index = Build(db, std::string(kKeys[6]) + std::string(kInclude));
  const RangeBatch all = RangeBatch::Everything(index->kind());
  std::vector<ColumnValues> values;
  const auto message = [&](const Aggregate& aggregate) {
    const absl::Status status = index->AggregateRanges(all, {aggregate}, &values);
    BOOST_TEST(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  BOOST_TEST(
      message(Aggregate::Sum("price"))
          .starts_with(
              "sum(price): the index includes no column 'price'; included columns: signed, float"));
  BOOST_TEST(message(Aggregate::Min(""))
                 .starts_with("min(): expected a column, got none; included columns: signed"));
  BOOST_TEST(message(Aggregate::Avg("text")) ==
             "avg(text): expected a column of numbers, found one of text");
  BOOST_TEST(message({AggregateFunction::kCountDistinct, "text"}) ==
             "count_distinct(text): expected no column: the function counts distinct keys");
  BOOST_TEST(message({static_cast<AggregateFunction>(77), "text"}) ==
             "expected an aggregate function, got 77");

  AggregateGroupsResult groups;
  for (const size_t parts : {size_t{0}, size_t{4}}) {
    const absl::Status status =
        index->AggregateGroups(all, parts, {Aggregate::Count()}, {}, &groups);
    BOOST_TEST(absl::IsInvalidArgument(status));
    BOOST_TEST(absl::StrContains(status.message(), "1 to 3 leading parts"));
  }
  RangeBatch with_cursor = all;
  for (const std::string& cursor : {std::string("x"), std::string("g\1", 2), std::string("g\3a")}) {
    with_cursor.after = absl::MakeConstSpan(&cursor, 1);
    BOOST_TEST(absl::IsInvalidArgument(
        index->AggregateGroups(with_cursor, 2, {Aggregate::Count()}, {}, &groups)));
    BOOST_TEST(absl::IsInvalidArgument(
        index->AggregateRanges(with_cursor, {Aggregate::Count()}, &values)));
  }
  const std::vector<uint32_t> numbers = {7};
  BOOST_TEST(absl::IsInvalidArgument(
      index->AggregateRanges(RangeBatch::Equal(numbers), {Aggregate::Count()}, &values)));

  // No aggregates, no ranges, no groups.
  RequireOk(index->AggregateRanges(all, {}, &values));
  BOOST_TEST(values.empty());
  RequireOk(index->AggregateRanges(all.Slice(0, 0), {Aggregate::Sum("signed")}, &values));
  BOOST_TEST(values.at(0).empty());
  QueryOptions no_groups;
  no_groups.limit = 0;
  RequireOk(index->AggregateGroups(all, 1, {}, no_groups, &groups));
  BOOST_TEST(groups.offsets == (std::vector<uint64_t>{0, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_index_without_columns_counts) {
  TestDatabase db;
  for (int i = 0; i < 100; ++i) db.Put(Key(i), absl::StrFormat("%d", i % 10));
  const auto index = Build(db, kKeys[0]);
  std::vector<ColumnValues> values;
  const RangeBatch all = RangeBatch::Everything(index->kind());
  RequireOk(index->AggregateRanges(all, {Aggregate::Count(), Aggregate::CountDistinct()}, &values));
  BOOST_CHECK(values[0].value(0) == DataValue(uint64_t{100}));
  BOOST_CHECK(values[1].value(0) == DataValue(uint64_t{10}));
  const absl::Status status = index->AggregateRanges(all, {Aggregate::Min("x")}, &values);
  BOOST_TEST(status.message() ==
             "min(x): the index includes no column 'x'; included columns: none");
}

BOOST_AUTO_TEST_CASE(what_is_made_is_counted_and_made_again_by_a_merge) {
  TestDatabase db;
  for (int i = 0; i < 1000; ++i) db.Put(Key(i), absl::StrFormat("%d|0||0|%d|0.5", i, i));
  auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
  const auto bytes = [&](const std::string& column) {
    const IndexStats stats = RequireOk(index->Stats());
    for (const IndexStats::Aggregates& of : stats.aggregates) {
      if (of.column == column) return of.bytes;
    }
    return uint64_t{0};
  };
  BOOST_TEST(index->Stats()->aggregates.empty());
  std::vector<ColumnValues> values;
  const RangeBatch all = RangeBatch::Everything(index->kind());
  RequireOk(index->AggregateRanges(all, {Aggregate::Sum("signed")}, &values));
  BOOST_TEST(bytes("signed") >= 2000u);
  BOOST_TEST(bytes("float") == 0u);
  db.Put(Key(5), "5|0||0|5000|0.5");
  RequireOk(index->CatchUp(*db.Source()).status());
  RequireOk(
      index->AggregateRanges(all, {Aggregate::Sum("signed"), Aggregate::CountDistinct()}, &values));
  BOOST_CHECK(values[0].value(0) == DataValue(int64_t{999 * 500 + 5000 - 5}));
  BOOST_TEST(bytes("") > 0u);
  RequireOk(index->Compact());
  BOOST_TEST(bytes("signed") >= 2000u);
  BOOST_TEST(bytes("") > 0u);

  OpenOptions options;
  options.aggregates = {"float", "nowhere"};
  index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
  BOOST_TEST(bytes("signed") == 0u);
  BOOST_TEST(bytes("float") >= 8000u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
