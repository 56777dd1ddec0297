// Predicates over sharded indexes, by every strategy, compared with brute force. If they are
// sharded by key range, keys and rows are in several shards; if by source, primary keys are.
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
#include "cairn/index_group.h"
#include "index/keys/key_number.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/engine/where/where_world.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sharded_group_test)
namespace {

using Members = std::vector<IndexGroup::Member>;

void Refused(const absl::Status& status, absl::StatusCode code, std::string_view message) {
  BOOST_TEST(status.code() == code, status);
  BOOST_TEST(absl::StrContains(std::string(status.message()), std::string(message)), status);
}

Strings Found(const IndexGroup& group, std::string_view where, const WhereOptions& options = {}) {
  WhereResult matches;
  RequireOk(group.Find(RequireOk(Predicate::Parse(where)), options, &matches));
  StringList keys;
  RequireOk(group.PrimaryKeys(matches, &keys));
  return {keys.begin(), keys.end()};
}

BOOST_AUTO_TEST_CASE(by_key_range_with_one_key_a_row) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (const size_t keys : {0, 1, 64, 1500}) {
    World world = FieldWorld(&random);
    world.Change(keys * 2, std::max<size_t>(keys, 1));
    world.BuildInShards(5);
    CheckMany(world, FewerSanitized(60, 6, 20), random, &answered);
  }
  for (const WhereStrategy strategy :
       {WhereStrategy::kGather, WhereStrategy::kBitmap, WhereStrategy::kWalk}) {
    BOOST_TEST(answered[strategy] > 0u);
  }
}

BOOST_AUTO_TEST_CASE(by_key_range_with_several_keys_a_row) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (const size_t keys : {1, 64, 1000}) {
    for (const uint32_t shards : {2, 6}) {
      World world = ArrayWorld(&random);
      world.Change(keys * 2, keys);
      world.BuildInShards(shards);
      CheckMany(world, FewerSanitized(60, 6, 20), random, &answered);
    }
  }
}

BOOST_AUTO_TEST_CASE(by_source_under_changes) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (const size_t keys : {1, 40, 400}) {
    for (const bool arrays : {false, true}) {
      World world = arrays ? ArrayWorld(&random, 3) : FieldWorld(&random, 3);
      world.Change(keys * 5, keys);
      world.BuildBySource();
      BOOST_TEST(world.Group()->in_shards());
      CheckMany(world, FewerSanitized(40, 5, 15), random, &answered);
      world.Change(keys / 4 + 1, keys + 20);
      world.CatchUp();
      CheckMany(world, FewerSanitized(40, 5, 15), random, &answered);
      world.Merge(random() % 3);
      CheckMany(world, FewerSanitized(20, 5, 10), random, &answered);
    }
  }
  for (const WhereStrategy strategy : kStrategies) {
    if (strategy != WhereStrategy::kAuto) BOOST_TEST(answered[strategy] > 0u);
  }
}

// Unusual keys, compared with a group of the same indexes unsharded.
BOOST_AUTO_TEST_CASE(odd_keys_are_found_as_in_one_piece) {
  TestDatabase db;
  const Strings floats = {"nan", "-0.5", "-0", "0", "inf", "-inf", "1.5", ""};
  const Strings texts = {"", std::string("\0", 1), std::string("a\0b", 3), "a", "zz\xff", "zz"};
  for (size_t i = 0; i < 60; ++i) {
    // The last field may be missing.
    const std::string& number = floats[i % floats.size()];
    db.Put(absl::StrFormat("r%02d", i),
           texts[i % texts.size()] + (number.empty() ? "" : "|" + number));
  }
  const Strings specs = {"f = value.field('|',1):f64", "t = value.field('|',0):bytes"};
  Members plain, sharded, mixed;
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = absl::StrFormat("plain%d", i);
    RequireOk(SecondaryIndex::Build(*db.Source(), Spec(specs[i]), db.Beside(name)));
    plain.push_back({RequireOk(SecondaryIndex::Open(db.Beside(name)))});
    sharded.push_back({BuildInShards(db, specs[i], 4, 1, absl::StrFormat("sharded%d", i))});
  }
  mixed = {plain[0], sharded[1]};
  const auto expected = RequireOk(IndexGroup::Create(plain));
  for (const Members& members : {sharded, mixed}) {
    const auto group = RequireOk(IndexGroup::Create(members));
    BOOST_TEST(!group->in_shards());
    for (const char* where : {"f >= 0", "f < 0 OR t = ''", "NOT f <= 1.5", "f = -0.0 AND t >= 'a'",
                              "NOT t LIKE 'zz%'", "f IN (0, -0.0, 1.5)", "t > '' AND f IS NULL"}) {
      BOOST_TEST_CONTEXT(where) {
        for (const char* order : {"", "f", "t"}) {
          WhereOptions options;
          options.order_by = order;
          BOOST_TEST(Found(*group, where, options) == Found(*expected, where, options),
                     boost::test_tools::per_element());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(columns_and_rows_of_members_in_shards) {
  TestDatabase db;
  for (int i = 0; i < 50; ++i) {
    db.Put(absl::StrFormat("r%02d", i), absl::StrFormat("%d|%d|%d", i % 7, i % 5, i));
  }
  const auto a = std::shared_ptr<SecondaryIndex>(
      BuildInShards(db, "a = value.field('|',0):u8,include(n=value.field('|',2):i64)", 3, 1, "a"));
  const auto b =
      std::shared_ptr<SecondaryIndex>(BuildInShards(db, "b = value.field('|',1):u8", 4, 1, "b"));
  const auto group = RequireOk(IndexGroup::Create({{a}, {b}}));
  WhereOptions options;
  options.columns = {"n", "a.n"};
  WhereResult matches;
  RequireOk(group->Find(RequireOk(Predicate::Parse("a >= 2 AND b <> 3")), options, &matches));
  BOOST_TEST(matches.shards.empty());
  BOOST_REQUIRE(!matches.row_ids.empty());
  StringList keys;
  RequireOk(group->PrimaryKeys(matches, &keys));
  std::vector<GlobalRowId> rows, of_member(matches.row_ids.size());
  for (size_t i = 0; i < matches.row_ids.size(); ++i) {
    rows.push_back(matches.row(i));
    BOOST_TEST(Described(matches.columns[0].value(i)) ==
               std::to_string(std::stoi(std::string(keys[i].substr(1)))));
    BOOST_CHECK(matches.columns[0].value(i) == matches.columns[1].value(i));
  }
  for (size_t m = 0; m < 2; ++m) {
    RequireOk(group->RowsOf(m, rows, absl::MakeSpan(of_member)));
    StringList own;
    RequireOk(group->members()[m].index->PrimaryKeys(of_member, &own));
    BOOST_TEST(Strings(own.begin(), own.end()) == Strings(keys.begin(), keys.end()));
  }
  std::map<uint64_t, int64_t> sums;
  for (int64_t i = 0; i < 50; ++i) {
    if (i % 7 >= 2 && i % 5 != 3) sums[static_cast<uint64_t>(i % 5)] += i;
  }
  GroupByResult groups;
  RequireOk(group->GroupBy(RequireOk(Predicate::Parse("a >= 2 AND b <> 3")), {Aggregate::Sum("n")},
                           {.group_by = {"b"}}, &groups));
  BOOST_REQUIRE_EQUAL(groups.size, sums.size());
  for (size_t g = 0; g < groups.size; ++g) {
    const uint64_t key = groups.keys[0].numbers<uint8_t>()[g];
    BOOST_TEST(groups.values[0].numbers<int64_t>()[g] == sums[key]);
  }
  BOOST_TEST(RequireOk(group->Count(Predicate::All({}))) == 50u);
  Refused(group->PrimaryKeys({MakeGlobalRowId(1, 0)}, &keys), absl::StatusCode::kOutOfRange,
          "expected a shard below 1, got 1");
}

BOOST_AUTO_TEST_CASE(rows_of_a_group_in_shards_have_64_bits) {
  ShardedSources sources(2);
  for (int i = 0; i < 20; ++i) {
    sources[i % 2].Put(absl::StrFormat("r%02d", i / 2), absl::StrFormat("%d|%d", i, i % 3));
  }
  const auto a = std::shared_ptr<SecondaryIndex>(
      sources.Build("a = value.field('|',0):u8,include(n=value.field('|',0):i64)", "a"));
  const auto b = std::shared_ptr<SecondaryIndex>(sources.Build("b = value.field('|',1):u8", "b"));
  const auto group = RequireOk(IndexGroup::Create({{a}, {b}}));
  WhereOptions options;
  options.columns = {"n"};
  WhereResult matches;
  RequireOk(group->Find(RequireOk(Predicate::Parse("b = 1")), options, &matches));
  BOOST_REQUIRE_EQUAL(matches.row_ids.size(), 7u);
  // The rows are sorted by primary key, then by shard.
  Strings values;
  for (size_t i = 0; i < 7; ++i) values.push_back(Described(matches.columns[0].value(i)));
  BOOST_TEST(values == (Strings{"1", "4", "7", "10", "13", "16", "19"}),
             boost::test_tools::per_element());
  StringList keys;
  std::vector<ColumnValues> columns;
  std::vector<GlobalRowId> rows, of_member(7);
  const auto invalid = absl::StatusCode::kInvalidArgument, no_row = absl::StatusCode::kOutOfRange;
  const GlobalRowId beyond = MakeGlobalRowId(2, 0);
  Refused(group->PrimaryKeys({beyond}, &keys), no_row, "expected a shard below 2, got 2");
  Refused(group->Columns({beyond}, options.columns, &columns), no_row,
          "expected a shard below 2, got 2");
  Refused(group->RowsOf(0, {beyond}, absl::MakeSpan(of_member).first(1)), no_row,
          "expected a shard below 2, got 2");
  const std::vector<uint32_t> few(3, 0);
  const RowSpan torn(matches.row_ids, few);
  Refused(group->PrimaryKeys(torn, &keys), invalid, "shards has 3 elements");
  Refused(group->Columns(torn, options.columns, &columns), invalid, "shards has 3 elements");
  Refused(group->RowsOf(0, torn, absl::MakeSpan(of_member)), invalid, "shards has 3 elements");
  const RowSpan low(matches.row_ids, {});
  Refused(group->PrimaryKeys(low, &keys), invalid, "expected the shard of each row, got none");
  Refused(group->RowsOf(0, low, absl::MakeSpan(of_member)), invalid, "expected the shard");
  for (size_t i = 0; i < 7; ++i) rows.push_back(matches.row(i));
  RequireOk(group->RowsOf(1, rows, absl::MakeSpan(of_member)));
  RequireOk(group->PrimaryKeys(matches, &keys));
  StringList own;
  RequireOk(b->PrimaryKeys(of_member, &own));
  BOOST_TEST(Strings(own.begin(), own.end()) == Strings(keys.begin(), keys.end()));

  GroupByResult groups;
  RequireOk(group->GroupBy(Predicate("b", 1), {Aggregate::Sum("n"), Aggregate::Max("a")},
                           {.group_by = {"b"}}, &groups));
  BOOST_REQUIRE_EQUAL(groups.size, 1u);
  BOOST_TEST(groups.rows == 7u);
  BOOST_TEST(groups.values[0].numbers<int64_t>()[0] == 70);
  BOOST_TEST(groups.values[1].numbers<uint8_t>()[0] == 19);

  const WherePlan plan = RequireOk(group->Explain(RequireOk(Predicate::Parse("a < 10 AND b = 1"))));
  BOOST_REQUIRE_EQUAL(plan.comparisons.size(), 2u);
  BOOST_TEST(plan.comparisons[0].rows + plan.comparisons[1].rows == 17u);

  // A cursor is valid for one predicate and order.
  const Predicate where("a", KeyQuery::Everything());
  WhereOptions page;
  page.limit = 1;
  RequireOk(group->Find(where, page, &matches));
  page.after = matches.cursor;
  BOOST_TEST(!page.after.empty());
  RequireOk(group->Find(where, page, &matches));
  const auto refused = [&](const Predicate& of, const WhereOptions& after) {
    Refused(group->Find(of, after, &matches), invalid,
            "WhereOptions::after: expected a cursor of the same query");
  };
  refused(Predicate("a", KeyQuery::AtLeast(0)), page);
  WhereOptions other = page;
  other.order = Order::kDescending;
  refused(where, other);
  other = page;
  other.order_by = "b";
  refused(where, other);
  for (const char* const after : {"p", "no cursor at all"}) {
    other = page;
    other.after = after;
    refused(where, other);
  }
}

BOOST_AUTO_TEST_CASE(indexes_that_do_not_belong_together_are_refused) {
  ShardedSources two(2), three(3);
  TestDatabase db, other;
  db.Put("a", "1");
  other.Put("a", "1");
  for (size_t s = 0; s < 2; ++s) two[s].Put("a", "1");
  for (size_t s = 0; s < 3; ++s) three[s].Put("a", "1");
  const auto shared = [](std::unique_ptr<SecondaryIndex> index) {
    return std::shared_ptr<SecondaryIndex>(std::move(index));
  };
  const auto of_two = shared(two.Build("x = value:text", "x"));
  const auto of_three = shared(three.Build("y = value:text", "y"));
  const auto by_key = shared(BuildInShards(db, "k = value:text", 2, 1, "k"));
  const auto elsewhere = shared(BuildInShards(other, "e = value:text", 2, 1, "e"));
  const auto failed = absl::StatusCode::kFailedPrecondition;
  Refused(IndexGroup::Create({{of_two}, {of_three}}).status(), failed,
          "index 'x' has 2 sources and 'y' has 3");
  Refused(IndexGroup::Create({{of_two}, {by_key}}).status(), failed,
          "index 'x' has 2 sources and 'k' has 1");
  Refused(IndexGroup::Create({{by_key}, {of_two}}).status(), failed,
          "index 'x' has 2 sources and 'k' has 1");
  Refused(IndexGroup::Create({{by_key}, {elsewhere}}).status(), failed,
          "indexes 'k' and 'e' belong to different databases");
  const auto before = shared(two.Build("b = value:text", "b"));
  two[1].Put("b", "2");
  RequireOk(before->CatchUp(*two[1].Source()).status());
  Refused(IndexGroup::Create({{of_two}, {before}}).status(), failed,
          "shard 1: indexes 'x' and 'b' belong to different states of the database");
  RequireOk(of_two->CatchUp(*two[1].Source()).status());
  BOOST_TEST(RequireOk(RequireOk(IndexGroup::Create({{of_two}, {before}}))
                           ->Count(RequireOk(Predicate::Parse("x >= '1' AND b = '2'")))) == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
