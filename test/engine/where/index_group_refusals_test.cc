// Rejected queries of a group of indexes, and its messages about columns, rows and plans.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/column.h"
#include "cairn/index_group.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "index/keys/key_number.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_group_refusals_test)
namespace {

using Members = std::vector<IndexGroup::Member>;

std::shared_ptr<SecondaryIndex> BuildAt(TestDatabase& db, std::string_view spec,
                                        const std::string& name) {
  return RequireOk(SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside(name)));
}

void Refused(const absl::Status& status, absl::StatusCode code, std::string_view message) {
  BOOST_TEST(status.code() == code);
  BOOST_TEST(absl::StrContains(std::string(status.message()), std::string(message)),
             status.ToString());
}

struct TwoIndexes {
  TwoIndexes() {
    db.Put("a", "1|Lisbon|x");
    db.Put("b", "2|Oslo");
    db.Put("c", "3");
    age = BuildAt(db, "age = value.field('|',0):u8", "age");
    city =
        BuildAt(db, "city = value.field('|',1):text,include(mark=value.field('|',2):text)", "city");
    both =
        BuildAt(db, "both = value.field('|',1):text,value.field('|',2):text,nulls=first", "both");
    group = RequireOk(IndexGroup::Create({{age}, {city}, {both}}));
  }

  TestDatabase db;
  std::shared_ptr<SecondaryIndex> age, city, both;
  std::shared_ptr<const IndexGroup> group;
};

BOOST_FIXTURE_TEST_CASE(predicates_that_an_index_cannot_answer, TwoIndexes) {
  const auto refused = [&](std::string_view text, std::string_view message) {
    BOOST_TEST_CONTEXT(text) {
      const Predicate where = RequireOk(Predicate::Parse(text));
      Refused(group->Count(where).status(), absl::StatusCode::kInvalidArgument, message);
      WhereResult matches;
      Refused(group->Find(where, {}, &matches), absl::StatusCode::kInvalidArgument, message);
      Refused(group->Explain(where).status(), absl::StatusCode::kInvalidArgument, message);
    }
  };
  refused("town = 'Lisbon'", "the group has no index 'town'; expected one of age, city, both");
  refused("age = 'x'", "index 'age', age = 'x': part 1 (u8)");
  refused("age = 300", "index 'age', age = 300: part 1 (u8)");
  refused("age STARTS WITH 'x'", "index 'age'");
  refused("age = (1, 2)", "expected 1 to 1 values");
  refused("city IS NULL", "city IS NULL: index 'city' does not keep rows without a key");
  refused("age = 1 OR city IS NULL", "does not keep rows without a key");
  refused("NOT both = (NULL, 'x')", "the negation of a key with NULL before another part");
  refused("both = ('Oslo', NULL, 'x')", "expected 1 to 2 values of leading parts, found 3");
  refused("both < ('Oslo', NULL, 'x')", "expected 1 to 2 values of leading parts, found 3");
  refused("age IN (1, NULL, 'x')", "index 'age'");
  refused("both = (NULL, 7)", "part 2 (text): expected text, found the number 7");
  refused("NOT both BETWEEN (NULL, 7) AND ('Oslo')", "part 2 (text): expected text");
  refused("both IS NULL", "for several parts it is unknown which one is null");
  Predicate deep("age", 1);
  for (int i = 0; i < 600; ++i) deep = !deep;
  Refused(group->Count(deep).status(), absl::StatusCode::kInvalidArgument,
          "at most 500 nested levels");
}

BOOST_FIXTURE_TEST_CASE(all_of_none_and_any_of_none, TwoIndexes) {
  const auto count = [&](const Predicate& where) { return RequireOk(group->Count(where)); };
  BOOST_TEST(count(Predicate::All({})) == 3u);
  BOOST_TEST(count(!Predicate::Any({}) && Predicate("age", 2)) == 1u);
  BOOST_TEST(count(Predicate::Any({})) == 0u);
  BOOST_TEST(count(Predicate::All({Predicate::All({}), !Predicate("city", "Oslo")})) == 1u);
  BOOST_TEST(count(RequireOk(Predicate::Parse("TRUE AND NOT (FALSE OR age = 1)"))) == 2u);
  BOOST_TEST((!Predicate::All({})).ToString() == "NOT (TRUE)");
  BOOST_TEST(RequireOk(RequireOk(IndexGroup::Create({{city}}))->Count(Predicate::All({}))) == 2u);
}

BOOST_FIXTURE_TEST_CASE(nulls_that_another_index_bounds, TwoIndexes) {
  const auto found = [&](std::string_view text) {
    WhereResult matches;
    RequireOk(group->Find(RequireOk(Predicate::Parse(text)), {}, &matches));
    StringList keys;
    RequireOk(group->PrimaryKeys(matches, &keys));
    return Strings(keys.begin(), keys.end());
  };
  BOOST_TEST(found("age >= 1 AND city IS NULL") == Strings{"c"});
  BOOST_TEST(found("age >= 1 AND NOT city IS NULL") == (Strings{"a", "b"}));
  BOOST_TEST(found("city IS NOT NULL") == (Strings{"a", "b"}));
  BOOST_TEST(found("NOT city = 'Oslo'") == Strings{"a"});
  BOOST_TEST(found("both = ('Lisbon')") == Strings{"a"});
  BOOST_TEST(found("both IN (('Lisbon', 'x'), ('Oslo', 'x'))") == Strings{"a"});
  BOOST_TEST(found("city = NULL OR city IN ('Oslo', NULL)") == Strings{"b"});
  BOOST_TEST(found("city NOT IN ('Oslo', NULL)") == Strings{});
  // TRUE restricts the rows like another index does.
  BOOST_TEST(found("TRUE AND city IS NULL") == Strings{"c"});
  BOOST_TEST(found("city IS NULL AND TRUE") == Strings{"c"});
}

// Keys of several parts are compared part by part, as SQL compares row values.
BOOST_AUTO_TEST_CASE(nulls_in_parts_of_keys) {
  TestDatabase db;
  db.Put("a", "1|1");
  db.Put("b", "1|2");
  db.Put("c", "2|1");
  db.Put("d", "3");
  db.Put("e", "1");
  const std::string parts = "value.field('|',0):u8,value.field('|',1):u8";
  const auto all = BuildAt(db, "all = value.field('|',0):u8", "all");
  for (const char* const nulls : {"", ",nulls=first", ",nulls=last"}) {
    const auto index = BuildAt(db, "k = " + parts + nulls, std::string("k") + nulls);
    const auto group = RequireOk(IndexGroup::Create({{all}, {index}}));
    const bool keeps = *nulls != 0;
    const auto check = [&](std::string_view text, const char* skipped, const char* kept) {
      BOOST_TEST_CONTEXT(text << nulls) {
        WhereResult matches;
        RequireOk(group->Find(RequireOk(Predicate::Parse(text)), {}, &matches));
        StringList keys;
        RequireOk(group->PrimaryKeys(matches, &keys));
        std::string found;
        for (const std::string_view key : keys) found.append(key);
        BOOST_TEST(found == (keeps ? kept : skipped));
      }
    };
    check("k > (1, NULL)", "c", "cd");
    check("k >= (2, NULL)", "", "d");
    check("k < (2, NULL)", "ab", "abe");
    check("k <= (NULL, 1)", "", "");
    check("NOT k = (1, NULL)", "c", "cd");
    check("k <> (1, 1)", "bc", "bcd");
    check("NOT k IN ((1, 1), (2, NULL))", "b", "bd");
    check("NOT k IN ((1, 1), (NULL, NULL))", "", "");
    check("k BETWEEN (1, NULL) AND (3, 0)", "c", "c");
    check("NOT k BETWEEN (1, 2) AND (2, NULL)", "a", "ad");
    check("NOT k > (1, 1)", "a", "a");
    check("NOT k < (1, 2)", "bc", "bcd");
    check("NOT k = (1)", "c", "cd");
    check("k >= (1) AND k < (3)", "abc", "abce");
    check("k = (1, 1) OR k > (2, NULL)", "a", "ad");
    if (!keeps) check("k IS NULL AND all >= 1", "de", "");
  }
}

BOOST_FIXTURE_TEST_CASE(options_that_are_wrong, TwoIndexes) {
  const Predicate where("age", KeyQuery::AtLeast(1));
  const auto refused = [&](const WhereOptions& options, std::string_view message) {
    WhereResult matches;
    Refused(group->Find(where, options, &matches), absl::StatusCode::kInvalidArgument, message);
  };
  WhereOptions options;
  options.limit = 0;
  WhereResult none;
  options.columns = {"mark"};
  RequireOk(group->Find(where, options, &none));
  BOOST_TEST((none.row_ids.empty() && none.cursor.empty() && none.columns.size() == 1));
  options = {};
  options.order_by = "town";
  refused(options, "the group has no index 'town'");
  options = {};
  for (const char* const after : {"?", "no cursor at all"}) {
    options.after = after;
    refused(options, "WhereOptions::after: expected a cursor of the same query");
  }
  options = {};
  options.strategy = WhereStrategy::kWalk;
  refused(options, "strategy walk does not support this query");
  options = {};
  options.columns = {"price"};
  refused(options, "or has the key of a column 'price'; columns: city.mark, age, city, both.part1");
}

BOOST_FIXTURE_TEST_CASE(columns_and_rows_of_members, TwoIndexes) {
  WhereResult matches;
  WhereOptions options;
  options.columns = {"mark", "city.mark"};
  options.order_by = "age";
  options.order = Order::kDescending;
  RequireOk(group->Find(Predicate("age", KeyQuery::Everything()), options, &matches));
  Strings values;
  for (size_t i = 0; i < matches.row_ids.size(); ++i) {
    values.push_back(Described(matches.columns[0].value(i)) +
                     Described(matches.columns[1].value(i)));
  }
  BOOST_TEST(values == (Strings{"nullnull", "nullnull", "'x''x'"}));
  std::vector<GlobalRowId> rows(matches.row_ids.size());
  RequireOk(group->RowsOf(1, matches, absl::MakeSpan(rows)));
  // The members are of one build, or of equal rows.
  BOOST_TEST(std::equal(rows.begin(), rows.end(), matches.row_ids.begin(), matches.row_ids.end()));
  const RowId beyond = group->end_row();
  StringList keys;
  Refused(group->PrimaryKeys({GlobalRowId{beyond}}, &keys), absl::StatusCode::kOutOfRange,
          "there is no row");
  Refused(group->RowsOf(3, matches, absl::MakeSpan(rows)), absl::StatusCode::kInvalidArgument,
          "member 3 of 3");
}

BOOST_FIXTURE_TEST_CASE(plans_say_what_is_done, TwoIndexes) {
  const WherePlan plan =
      RequireOk(group->Explain(RequireOk(Predicate::Parse("city = 'Oslo' AND age >= 2"))));
  BOOST_REQUIRE(plan.comparisons.size() == 2u);
  BOOST_TEST(plan.comparisons[0].rows == 1u);
  BOOST_TEST(plan.comparisons[1].rows == 2u);
  BOOST_TEST(plan.candidates.size() == 3u);
  BOOST_TEST(absl::StrContains(plan.ToString(), "city = 'Oslo': 1 entries of 'city'"),
             plan.ToString());
}

BOOST_FIXTURE_TEST_CASE(indexes_that_do_not_belong_together, TwoIndexes) {
  using Code = absl::StatusCode;
  Refused(IndexGroup::Create({}).status(), Code::kInvalidArgument,
          "expected at least one index, got none");
  Refused(IndexGroup::Create({{nullptr}}).status(), Code::kInvalidArgument,
          "expected an index, got null");
  Refused(IndexGroup::Create({{age}, {city, "age"}}).status(), Code::kInvalidArgument,
          "expected distinct names of the indexes in a group, got 'age' twice");
  const std::shared_ptr<SecondaryIndex> unnamed = BuildAt(db, "value:bytes", "unnamed");
  Refused(IndexGroup::Create({{age}, {unnamed}}).status(), Code::kInvalidArgument, "has no name");
  RequireOk(IndexGroup::Create({{age}, {unnamed, "whole"}}));

  TestDatabase other;
  other.Put("a", "1");
  const auto elsewhere = BuildAt(other, "elsewhere = value:bytes", "elsewhere");
  Refused(IndexGroup::Create({{age}, {elsewhere}}).status(), Code::kFailedPrecondition,
          "indexes 'age' and 'elsewhere' belong to different databases");
  db.Put("d", "4");
  const auto later = BuildAt(db, "later = value:bytes", "later");
  Refused(
      IndexGroup::Create({{age}, {later}}).status(), Code::kFailedPrecondition,
      "indexes 'age' and 'later' belong to different states of the database: sequence number 3");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
