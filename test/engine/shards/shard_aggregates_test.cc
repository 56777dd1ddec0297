// Aggregates and groups of sharded indexes, compared with all their entries, and with an unsharded
// index of the same rows.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/aggregate.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/aggregate_rows.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_aggregates_test)
namespace {

std::string SpecOf(std::string_view keys) {
  return std::string(keys) + std::string(kInclude);
}

void CheckSameValues(const Aggregate& aggregate, const ColumnValues& found,
                     const ColumnValues& expected, double scale) {
  BOOST_REQUIRE(found.type() == expected.type());
  BOOST_REQUIRE_EQUAL(found.size(), expected.size());
  const bool added = aggregate.function == AggregateFunction::kSum ||
                     aggregate.function == AggregateFunction::kAvg;
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(SameValue(found.value(i), expected.value(i), added, scale),
               i << ": " << AggregateFunctionName(aggregate.function) << "(" << aggregate.column
                 << ") is " << Described(found.value(i)) << ", expected "
                 << Described(expected.value(i)));
  }
}

// The same ranges and groups of two indexes with the same entries.
void CheckSame(const SecondaryIndex& sharded, const SecondaryIndex& plain,
               std::mt19937_64& random) {
  const AggregateOracle oracle(plain, kColumns);
  SomeKeyRanges some(oracle, plain.kind(), 12, random);
  const RangeBatch ranges = some.Batch();
  const std::vector<Aggregate> aggregates = AllAggregates();
  const double scale = 1000.0 * static_cast<double>(oracle.size());
  std::vector<ColumnValues> values, expected;
  RequireOk(sharded.AggregateRanges(ranges, aggregates, &values));
  RequireOk(plain.AggregateRanges(ranges, aggregates, &expected));
  for (size_t a = 0; a < aggregates.size(); ++a) {
    CheckSameValues(aggregates[a], values[a], expected[a], scale);
  }
  QueryOptions options;
  options.limit = random() % 2 == 0 ? UINT64_MAX : 1 + random() % 9;
  const size_t parts = 1 + random() % plain.codec().parts().size();
  AggregateGroupsResult groups, groups_expected;
  RequireOk(sharded.AggregateGroups(ranges, parts, aggregates, options, &groups));
  RequireOk(plain.AggregateGroups(ranges, parts, aggregates, options, &groups_expected));
  BOOST_TEST(groups.offsets == groups_expected.offsets, boost::test_tools::per_element());
  // A page of one index continues in the other.
  BOOST_TEST(groups.cursors == groups_expected.cursors, boost::test_tools::per_element());
  for (size_t a = 0; a < aggregates.size(); ++a) {
    CheckSameValues(aggregates[a], groups.values[a], groups_expected.values[a], scale);
  }
}

BOOST_AUTO_TEST_CASE(by_key_range_of_every_kind_of_key) {
  auto random = TestRandom();
  for (const std::string_view keys : kKeys) {
    if (kUnderTsan && keys != kKeys[0]) continue;
    TestDatabase db;
    Rows rows(random);
    rows.nulls = keys.find("nulls") != keys.npos;
    rows.keys = random() % 3 == 0 ? 2 : 40;  // few: a key spans shards
    for (uint64_t i = 0; i < (kSmaller ? 60 : 200); ++i) db.Put(Key(i), rows.Any());
    const auto plain = Build(db, SpecOf(keys));
    for (const uint32_t shards : {1, 2, 5}) {
      if (kSmaller && shards == 2) continue;
      BOOST_TEST_CONTEXT(keys << " in " << shards << " shards") {
        const auto index = BuildInShards(db, SpecOf(keys), shards);
        CheckAll(*index, random);
        CheckSame(*index, *plain, random);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(few_entries_and_none_in_more_shards) {
  auto random = TestRandom();
  for (const size_t entries : {0, 1, 2, 3, 16, 65}) {
    if (kUnderTsan && entries != 1 && entries != 65) continue;
    for (const bool equal : {false, true}) {
      TestDatabase db;
      Rows rows(random);
      rows.keys = equal ? 1 : 1000;
      for (size_t i = 0; i < entries; ++i) db.Put(Key(i), rows.Any());
      const auto plain = Build(db, SpecOf(kKeys[0]));
      const auto index = BuildInShards(db, SpecOf(kKeys[0]), 5);
      CheckAll(*index, random);
      CheckSame(*index, *plain, random);
    }
  }
}

// Keys occur in several sources, and so do rows with the same primary keys; one source has none at
// first.
BOOST_AUTO_TEST_CASE(by_source_under_every_kind_of_change) {
  auto random = TestRandom();
  for (size_t k = 0; k < kKeys.size(); k += kSmaller ? 4 : 1) {
    const std::string_view keys = kKeys[k];
    BOOST_TEST_CONTEXT(keys) {
      ShardedSources sources(3);
      Rows rows(random);
      rows.nulls = keys.find("nulls") != keys.npos;
      const uint64_t universe = random() % 3 == 0 ? 12 : 80;
      for (size_t s = 0; s < 2; ++s) {
        for (uint64_t i = 0; i < universe; ++i) {
          if (random() % 4 != 0) sources[s].Put(Key(i), rows.Any());
        }
      }
      const auto index = sources.Build(SpecOf(keys));
      CheckAll(*index, random);
      for (int round = 0; round < 2; ++round) {
        for (size_t s = 0; s < sources.size(); ++s)
          Change(sources[s], rows, universe, universe / 3);
        sources.CatchUp(index.get());
        CheckAll(*index, random);
        if (round == 0) RequireOk(index->Compact());
      }
      TestDatabase one;
      for (size_t s = 0; s < sources.size(); ++s) {
        const std::unique_ptr<rocksdb::Iterator> row(sources[s].db()->NewIterator({}));
        for (row->SeekToFirst(); row->Valid(); row->Next()) {
          one.Put(absl::StrFormat("%d:%s", s, row->key().ToStringView()),
                  row->value().ToStringView());
        }
      }
      CheckSame(*index, *Build(one, SpecOf(keys)), random);
    }
  }
}

BOOST_AUTO_TEST_CASE(large_batches_and_many_groups_are_in_order) {
  auto random = TestRandom();
  TestDatabase db;
  Rows rows(random);
  rows.keys = 3000;
  rows.odds = 1000000;
  for (uint64_t i = 0; i < (kSmaller ? 1000 : 4000); ++i) db.Put(Key(i), rows.Any());
  const auto plain = Build(db, SpecOf(kKeys[0]));
  const auto index = BuildInShards(db, SpecOf(kKeys[0]), 4);
  std::vector<uint32_t> lower(70000), upper(lower.size());
  for (size_t i = 0; i < lower.size(); ++i) {
    lower[i] = static_cast<uint32_t>(random() % 3100);
    upper[i] = static_cast<uint32_t>(random() % 3100);
  }
  const std::vector<Aggregate> aggregates = {Aggregate::Count(), Aggregate::CountDistinct(),
                                             Aggregate::Sum("signed"), Aggregate::Max("text")};
  std::vector<ColumnValues> values, expected;
  const RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  RequireOk(index->AggregateRanges(ranges, aggregates, &values));
  RequireOk(plain->AggregateRanges(ranges, aggregates, &expected));
  for (size_t a = 0; a < aggregates.size(); ++a) {
    BOOST_REQUIRE_EQUAL(values[a].size(), lower.size());
    size_t different = 0;
    for (size_t i = 0; i < lower.size(); ++i) {
      different += values[a].value(i) == expected[a].value(i) ? 0 : 1;
    }
    BOOST_TEST(different == 0u);
  }
  CheckGroups(*index, 1, UINT64_MAX, 1, random);  // more groups than are evaluated at a time
  CheckGroups(*index, 1, 700, 3, random);
}

BOOST_AUTO_TEST_CASE(a_key_counts_once_wherever_it_is) {
  ShardedSources sources(3);
  for (size_t s = 0; s < 3; ++s) sources[s].Put("row", "7");
  sources[0].Put("other", "8");
  sources[2].Put("other", "8");
  const auto index = sources.Build("value:text");
  std::vector<ColumnValues> values;
  const auto counts = [&](const SecondaryIndex& of) {
    const std::vector<std::string_view> keys = {"7", "8", "9"};
    RequireOk(of.AggregateRanges(RangeBatch::Equal(keys), {Aggregate::CountDistinct()}, &values));
    std::string text;
    for (size_t i = 0; i < keys.size(); ++i) text += Described(values[0].value(i)) + " ";
    RequireOk(of.AggregateRanges(RangeBatch::Everything(PhysicalType::kBytes),
                                 {Aggregate::CountDistinct(), Aggregate::Count()}, &values));
    return text + Described(values[0].value(0)) + " of " + Described(values[1].value(0));
  };
  BOOST_TEST(counts(*index) == "1 1 0 2 of 5");
  const IndexStats stats = RequireOk(index->Stats());
  BOOST_REQUIRE(!stats.aggregates.empty());
  BOOST_TEST(stats.aggregates.back().bytes > 0u);
  // A pinned version counts its own entries, regardless of later changes.
  const auto pinned = RequireOk(index->Pin());
  sources[1].Put("other", "9");
  sources[2].Delete("other");
  sources.CatchUp(index.get());
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(counts(*index) == "1 1 1 3 of 5");
    BOOST_TEST(counts(*pinned) == "1 1 0 2 of 5");
  }
  // All rows of one key, over all shards.
  TestDatabase db;
  for (int i = 0; i < 9; ++i) db.Put(std::to_string(i), "7");
  BOOST_TEST(counts(*BuildInShards(db, "value:text", 4)) == "1 0 0 1 of 9");
}

BOOST_AUTO_TEST_CASE(sums_fit_or_do_not_in_all_shards_together) {
  // Sharded by source: each sum fits, the total does not; and the reverse.
  ShardedSources sources(2);
  const auto row = [](int64_t wide, uint64_t big) {
    return absl::StrFormat("1|2|||0|0|0||0|%d|%d", wide, big);
  };
  sources[0].Put("a", row(INT64_MAX, UINT64_MAX));
  sources[0].Put("b", row(INT64_MAX, 0));
  sources[1].Put("a", row(INT64_MIN, 1));
  sources[1].Put("b", row(INT64_MIN, 0));
  TestDatabase db;
  for (size_t s = 0; s < 2; ++s) {
    for (const char* key : {"a", "b"}) {
      std::string value;
      RequireOk(sources[s].db()->Get({}, key, &value).ok() ? absl::OkStatus()
                                                           : absl::NotFoundError(key));
      db.Put(std::to_string(s) + key, value);
    }
  }
  const std::string spec = SpecOf("value.field('|',0):u8,value.field('|',1):u8");
  const auto by_source = sources.Build(spec);
  const auto by_key = BuildInShards(db, spec, 3);
  for (const SecondaryIndex* index : {by_source.get(), by_key.get()}) {
    std::vector<ColumnValues> values;
    AggregateGroupsResult groups;
    const std::vector<uint32_t> lower = {0, 0}, upper = {0, 0xFFFF};
    const RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
    RequireOk(
        index->AggregateRanges(ranges, {Aggregate::Sum("wide"), Aggregate::Avg("big")}, &values));
    BOOST_TEST(Described(values[0].value(1)) == "-2");
    BOOST_CHECK(values[1].value(1) == DataValue(4611686018427387904.0));
    BOOST_TEST(values[0].is_null(0));
    RequireOk(index->AggregateGroups(ranges, 2, {Aggregate::Sum("wide")}, {}, &groups));
    BOOST_TEST(Described(groups.values[0].value(0)) == "-2");

    const absl::Status sum = index->AggregateRanges(ranges, {Aggregate::Sum("big")}, &values);
    BOOST_TEST(absl::IsOutOfRange(sum), sum);
    BOOST_TEST(absl::StrContains(sum.message(),
                                 "range 1: the sum of column 'big' is 18446744073709551616"),
               sum);
    const absl::Status group =
        index->AggregateGroups(ranges, 2, {Aggregate::Sum("big")}, {}, &groups);
    BOOST_TEST(absl::IsOutOfRange(group), group);
    BOOST_TEST(absl::StrContains(group.message(), "group 1,2: the sum of column 'big'"), group);
  }
}

BOOST_AUTO_TEST_CASE(pages_go_on_in_later_versions) {
  ShardedSources sources(2);
  const auto row = [](int key) { return absl::StrFormat("%d|0", key); };
  for (int i = 0; i < 10; ++i) sources[i % 2].Put(Key(i), row(i / 3));
  const auto index = sources.Build("value.field('|',0):u8,value.field('|',1):u8");
  QueryOptions options;
  options.limit = 2;
  AggregateGroupsResult groups;
  RangeBatch all = RangeBatch::Everything(index->kind());
  RequireOk(index->AggregateGroups(all, 1, {Aggregate::Count()}, options, &groups));
  BOOST_TEST(Described(groups.values[0].value(0)) == "3");
  BOOST_TEST(Described(groups.values[0].value(1)) == "3");
  sources[1].Put("new", row(1));  // before the cursor
  sources[1].Put("newer", row(2));
  sources[0].Put("newest", row(9));
  sources.CatchUp(index.get());
  RequireOk(index->Compact());
  const Strings after = groups.cursors;
  all.after = after;
  options.limit = UINT64_MAX;
  RequireOk(index->AggregateGroups(all, 1, {Aggregate::Count()}, options, &groups));
  BOOST_REQUIRE_EQUAL(groups.offsets[1], 3u);
  BOOST_TEST(Described(groups.keys[0].value(0)) == "2");
  BOOST_TEST(Described(groups.values[0].value(0)) == "4");
  BOOST_TEST(Described(groups.values[0].value(1)) == "1");
  BOOST_TEST(Described(groups.keys[0].value(2)) == "9");
  BOOST_TEST(groups.cursors[0].empty());
}

BOOST_AUTO_TEST_CASE(bad_questions_are_refused_and_empty_ones_answered) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i) db.Put(Key(i), absl::StrFormat("%d|0|x|0|1", i));
  const auto index = BuildInShards(db, SpecOf(kKeys[0]), 3);
  const RangeBatch all = RangeBatch::Everything(index->kind());
  std::vector<ColumnValues> values;
  AggregateGroupsResult groups;
  const auto refused = [](const absl::Status& status, std::string_view why) {
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    BOOST_TEST(absl::StrContains(std::string(status.message()), std::string(why)), status);
  };
  refused(index->AggregateRanges(all, {Aggregate::Sum("no")}, &values), "no column 'no'");
  refused(index->AggregateRanges(all, {Aggregate::Sum("text")}, &values), "of numbers");
  refused(index->AggregateGroups(all, 1, {Aggregate::Min("no")}, {}, &groups), "no column 'no'");
  refused(index->AggregateGroups(all, 0, {}, {}, &groups), "1 to 1 leading parts");
  refused(index->AggregateGroups(all, 2, {}, {}, &groups), "1 to 1 leading parts");
  const std::vector<std::string_view> texts = {"x"};
  refused(index->AggregateRanges(RangeBatch::Equal(texts), {Aggregate::Count()}, &values), "keys");
  refused(index->AggregateGroups(RangeBatch::Equal(texts), 1, {}, {}, &groups), "keys");
  RangeBatch behind = all;
  const Strings none = {""}, two = {"", ""}, odd = {"odd"};
  behind.after = none;
  refused(index->AggregateRanges(behind, {Aggregate::Count()}, &values), "expected no cursors");
  behind.after = two;
  refused(index->AggregateGroups(behind, 1, {}, {}, &groups), "2 cursors for 1 ranges");
  behind.after = odd;
  refused(index->AggregateGroups(behind, 1, {}, {}, &groups),
          "after: expected a cursor of the same query");

  const std::vector<uint32_t> no_keys;
  RequireOk(index->AggregateRanges(RangeBatch::Equal(no_keys),
                                   {Aggregate::Sum("signed"), Aggregate::Max("text")}, &values));
  BOOST_TEST(values[0].empty());
  BOOST_CHECK(values[0].type() == DataType::kI64 && values[1].type() == DataType::kText);
  RequireOk(index->AggregateGroups(RangeBatch::Equal(no_keys), 1, {Aggregate::Sum("signed")}, {},
                                   &groups));
  BOOST_TEST(groups.size() == 0u);
  RequireOk(index->AggregateRanges(all, {}, &values));
  BOOST_TEST(values.empty());
  QueryOptions nothing;
  nothing.limit = 0;
  RequireOk(index->AggregateGroups(all, 1, {Aggregate::Count()}, nothing, &groups));
  BOOST_TEST(groups.offsets.back() == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
