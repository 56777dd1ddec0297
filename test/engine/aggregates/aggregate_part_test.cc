// Aggregates that are queried shard by shard and combined by a ShardMap, compared with the index
// that has all shards open.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/aggregate.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "engine/aggregates/aggregate_part.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/shards/shard_batch.h"
#include "test/engine/serve/aggregate_rows.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(aggregate_part_test)
namespace {

// A sharded index, queried as by several processes.
class Apart {
 public:
  explicit Apart(const std::string& directory) : map_(RequireOk(ShardMap::Open(directory))) {
    for (uint32_t s = 0; s < map_->shards().size(); ++s) {
      shards_.push_back(RequireOk(map_->OpenShard(s, ForTests())));
    }
  }

  const ShardMap& map() const { return *map_; }
  const SecondaryIndex& shard(size_t s) const { return *shards_[s]; }

  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values) {
    const auto parts = Ask(ranges, [&](const SecondaryIndex& shard, const RangeBatch& some) {
      return map_->AggregateRangesPart(shard, some, aggregates);
    });
    return map_->CombineRanges(ranges.size(), aggregates, parts, values);
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) {
    const auto parts = Ask(ranges, [&](const SecondaryIndex& shard, const RangeBatch& some) {
      return map_->AggregateGroupsPart(shard, some, leading_parts, aggregates, options);
    });
    return map_->CombineGroups(ranges.size(), leading_parts, aggregates, options, parts, groups);
  }

 private:
  // Valid until the next call.
  template <typename Body>
  std::vector<AggregatePart> Ask(const RangeBatch& ranges, Body body) {
    RangeBatch whole = ranges;
    whole.after = {};
    RequireOk(map_->RouteRanges(whole, &queries_));
    std::vector<AggregatePart> parts;
    results_.assign(shards_.size(), "");
    for (size_t s = 0; s < shards_.size(); ++s) {
      const auto asked = absl::MakeConstSpan(queries_.query_of)
                             .subspan(queries_.begin[s], queries_.begin[s + 1] - queries_.begin[s]);
      if (asked.empty()) continue;
      GatheredRanges some;
      some.Gather(ranges, asked);
      results_[s] = RequireOk(body(*shards_[s], some.Batch()));
      parts.push_back({asked, results_[s]});
    }
    return parts;
  }

  const std::unique_ptr<ShardMap> map_;
  std::vector<std::unique_ptr<SecondaryIndex>> shards_;
  ShardQueries queries_;
  Strings results_;
};

std::string SpecWith(std::string_view keys) {
  return std::string(keys) + std::string(kInclude);
}

void CheckEqual(const std::vector<ColumnValues>& found, const std::vector<ColumnValues>& expected) {
  BOOST_REQUIRE_EQUAL(found.size(), expected.size());
  for (size_t c = 0; c < found.size(); ++c) {
    BOOST_REQUIRE(found[c].type() == expected[c].type());
    BOOST_REQUIRE_EQUAL(found[c].size(), expected[c].size());
    for (size_t i = 0; i < found[c].size(); ++i) {
      BOOST_TEST(SameValue(found[c].value(i), expected[c].value(i), false, 0),
                 "column " << c << ", " << i << " is " << Described(found[c].value(i))
                           << ", expected " << Described(expected[c].value(i)));
    }
  }
}

// Checks ranges, and groups page by page, of both.
void CheckApart(Apart& apart, const SecondaryIndex& index, std::mt19937_64& random) {
  const AggregateOracle oracle(index, kColumns);
  SomeKeyRanges some(oracle, index.kind(), 12, random);
  RangeBatch ranges = some.Batch();
  const std::vector<Aggregate> aggregates = AllAggregates();
  std::vector<ColumnValues> values, expected;
  RequireOk(apart.AggregateRanges(ranges, aggregates, &values));
  RequireOk(index.AggregateRanges(ranges, aggregates, &expected));
  CheckEqual(values, expected);
  const size_t parts = 1 + random() % index.codec().parts().size();
  QueryOptions options;
  options.limit = random() % 2 == 0 ? UINT64_MAX : random() % 9;
  Strings after;
  for (int page = 0; page < 3; ++page) {
    AggregateGroupsResult groups, all;
    RequireOk(apart.AggregateGroups(ranges, parts, aggregates, options, &groups));
    RequireOk(index.AggregateGroups(ranges, parts, aggregates, options, &all));
    BOOST_TEST(groups.offsets == all.offsets, boost::test_tools::per_element());
    BOOST_TEST(groups.cursors == all.cursors, boost::test_tools::per_element());
    CheckEqual(groups.keys, all.keys);
    CheckEqual(groups.values, all.values);
    after = groups.cursors;
    ranges.after = after;
  }
}

std::vector<ColumnValues> CountsOf(Apart& apart, const RangeBatch& ranges) {
  std::vector<ColumnValues> values;
  RequireOk(
      apart.AggregateRanges(ranges, {Aggregate::CountDistinct(), Aggregate::Count()}, &values));
  return values;
}

BOOST_AUTO_TEST_CASE(by_key_range_of_every_kind_of_key) {
  auto random = TestRandom();
  for (const std::string_view keys : kKeys) {
    TestDatabase db;
    Rows rows(random);
    rows.nulls = keys.find("nulls") != keys.npos;
    rows.keys = random() % 3 == 0 ? 2 : 40;  // few: a key spans shards
    for (uint64_t i = 0; i < (kSmaller ? 60 : 200); ++i) db.Put(Key(i), rows.Any());
    for (const uint32_t shards : {1, 2, 5}) {
      if (kSmaller && shards == 2) continue;
      BOOST_TEST_CONTEXT(keys << " in " << shards << " shards") {
        const auto index = BuildInShards(db, SpecWith(keys), shards);
        Apart apart(db.Beside("sharded"));
        CheckApart(apart, *index, random);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(few_entries_and_none_in_more_shards) {
  auto random = TestRandom();
  for (const size_t entries : {0, 1, 2, 3, 16, 65}) {
    for (const bool equal : {false, true}) {
      TestDatabase db;
      Rows rows(random);
      rows.keys = equal ? 1 : 1000;
      for (size_t i = 0; i < entries; ++i) db.Put(Key(i), rows.Any());
      const auto index = BuildInShards(db, SpecWith(kKeys[0]), 5);
      Apart apart(db.Beside("sharded"));
      CheckApart(apart, *index, random);
      const auto counts = CountsOf(apart, RangeBatch::Everything(index->kind()));
      if (equal) BOOST_TEST(Described(counts[0].value(0)) == (entries == 0 ? "0" : "1"));
      BOOST_TEST(Described(counts[1].value(0)) == std::to_string(entries));
    }
  }
}

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
      const auto index = sources.Build(SpecWith(keys));
      for (int round = 0; round < 3; ++round) {
        Apart apart(sources.Path("sources"));
        CheckApart(apart, *index, random);
        if (round == 2) break;
        for (size_t s = 0; s < sources.size(); ++s) {
          Change(sources[s], rows, universe, universe / 3);
        }
        sources.CatchUp(index.get());
        if (round == 1) RequireOk(index->Compact());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(many_ranges_and_groups) {
  auto random = TestRandom();
  TestDatabase db;
  Rows rows(random);
  rows.keys = 3000;
  for (uint64_t i = 0; i < (kSmaller ? 1000 : 4000); ++i) db.Put(Key(i), rows.Any());
  const auto index = BuildInShards(db, SpecWith(kKeys[0]), 4);
  Apart apart(db.Beside("sharded"));
  std::vector<uint32_t> lower(5000), upper(lower.size());
  for (size_t i = 0; i < lower.size(); ++i) {
    lower[i] = static_cast<uint32_t>(random() % 3100);
    upper[i] = static_cast<uint32_t>(random() % 3100);
  }
  const std::vector<Aggregate> aggregates = {Aggregate::Count(), Aggregate::CountDistinct(),
                                             Aggregate::Sum("float"), Aggregate::Max("text")};
  std::vector<ColumnValues> values, expected;
  const RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  RequireOk(apart.AggregateRanges(ranges, aggregates, &values));
  RequireOk(index->AggregateRanges(ranges, aggregates, &expected));
  CheckEqual(values, expected);
  for (const uint64_t limit : {UINT64_MAX, uint64_t{700}}) {
    QueryOptions options;
    options.limit = limit;
    AggregateGroupsResult groups, all;
    const RangeBatch everything = RangeBatch::Everything(index->kind());
    RequireOk(apart.AggregateGroups(everything, 1, aggregates, options, &groups));
    RequireOk(index->AggregateGroups(everything, 1, aggregates, options, &all));
    BOOST_TEST(groups.cursors == all.cursors, boost::test_tools::per_element());
    CheckEqual(groups.keys, all.keys);
    CheckEqual(groups.values, all.values);
  }
}

BOOST_AUTO_TEST_CASE(sums_fit_or_do_not_in_all_shards_together) {
  ShardedSources sources(2);
  const auto row = [](int64_t wide, uint64_t big) {
    return absl::StrFormat("1|2|||0|0|0||0|%d|%d", wide, big);
  };
  sources[0].Put("a", row(INT64_MAX, UINT64_MAX));
  sources[0].Put("b", row(INT64_MAX, 0));
  sources[1].Put("a", row(INT64_MIN, 1));
  sources[1].Put("b", row(INT64_MIN, 0));
  sources.Build(SpecWith("value.field('|',0):u8,value.field('|',1):u8"));
  Apart apart(sources.Path("sources"));
  const std::vector<uint32_t> lower = {0, 0}, upper = {0, 0xFFFF};
  const RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  std::vector<ColumnValues> values;
  AggregateGroupsResult groups;
  RequireOk(
      apart.AggregateRanges(ranges, {Aggregate::Sum("wide"), Aggregate::Avg("big")}, &values));
  BOOST_TEST(values[0].is_null(0));
  BOOST_TEST(Described(values[0].value(1)) == "-2");
  BOOST_CHECK(values[1].value(1) == DataValue(4611686018427387904.0));
  RequireOk(apart.AggregateGroups(ranges, 2, {Aggregate::Sum("wide")}, {}, &groups));
  BOOST_TEST(Described(groups.values[0].value(0)) == "-2");
  const absl::Status sum = apart.AggregateRanges(ranges, {Aggregate::Sum("big")}, &values);
  BOOST_TEST(absl::IsOutOfRange(sum), sum);
  BOOST_TEST(
      absl::StrContains(sum.message(), "range 1: the sum of column 'big' is 18446744073709551616"),
      sum);
  const absl::Status group = apart.AggregateGroups(ranges, 2, {Aggregate::Sum("big")}, {}, &groups);
  BOOST_TEST(absl::IsOutOfRange(group), group);
  BOOST_TEST(absl::StrContains(group.message(), "group 1,2: the sum of column 'big'"), group);
}

BOOST_AUTO_TEST_CASE(a_sum_that_so_many_numbers_cannot_come_to_is_refused) {
  const std::vector<ColumnSchema> columns = {{"price", DataType::kI64}};
  const std::vector<Aggregate> aggregates = {Aggregate::Sum("price")};
  const AggregatePlan plan = RequireOk(AggregatePlan::Make(columns, aggregates));
  const auto decoded = [&](absl::int128 sum, uint64_t count) {
    AggregateResults results(plan);
    results.inputs[0].sums = {{sum, count}};
    return DecodeRanges(plan, PhysicalType::kU32, 1,
                        EncodePart(plan, PhysicalType::kU32, 1, results))
        .status();
  };
  const absl::int128 greatest = absl::MakeInt128(0, UINT64_MAX);
  RequireOk(decoded(3 * greatest, 3));
  RequireOk(decoded(-3 * greatest, 3));
  RequireOk(decoded(0, 0));
  BOOST_TEST(absl::IsInvalidArgument(decoded(3 * greatest, 2)));
  BOOST_TEST(absl::IsInvalidArgument(decoded(1, 0)));
  BOOST_TEST(absl::IsInvalidArgument(decoded(absl::Int128Max(), kMaxEntries)));
  BOOST_TEST(absl::IsInvalidArgument(decoded(absl::Int128Min(), kMaxEntries)));
  BOOST_TEST(absl::IsInvalidArgument(decoded(5, kMaxEntries + 1)));
}

BOOST_AUTO_TEST_CASE(what_is_no_part_is_refused) {
  auto random = TestRandom();
  TestDatabase db;
  Rows rows(random);
  for (uint64_t i = 0; i < 30; ++i) db.Put(Key(i), rows.Any());
  const auto refused = [](const absl::Status& status, const char* with) {
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    BOOST_TEST(absl::StrContains(status.message(), with), status);
  };
  for (const std::string_view keys : {kKeys[0], kKeys[6]}) {
    const auto index = BuildInShards(db, SpecWith(keys), 3);
    const Apart apart(db.Beside("sharded"));
    const ShardMap& map = apart.map();
    const std::vector<Aggregate> aggregates = AllAggregates();
    const RangeBatch all = RangeBatch::Everything(index->kind());
    const std::string part = RequireOk(map.AggregateRangesPart(apart.shard(0), all, aggregates));
    const std::string group =
        RequireOk(map.AggregateGroupsPart(apart.shard(0), all, 1, aggregates, {}));
    const std::vector<uint32_t> first = {0}, second = {1}, both = {0, 1};
    std::vector<ColumnValues> values;
    AggregateGroupsResult groups;
    const auto ranges = [&](const std::string& bytes, const std::vector<uint32_t>& queries) {
      return map.CombineRanges(1, aggregates, {{queries, bytes}}, &values);
    };
    const auto grouped = [&](const std::string& bytes, const std::vector<uint32_t>& queries) {
      return map.CombineGroups(1, 1, aggregates, {}, {{queries, bytes}}, &groups);
    };
    RequireOk(ranges(part, first));
    RequireOk(grouped(group, first));
    refused(ranges(part, second), "part 0: expected a range below 1, got 1");
    refused(grouped(group, second), "part 0: expected a range below 1, got 1");
    refused(map.CombineRanges(2, aggregates, {{both, part}}, &values), "expected a shard's part");
    refused(ranges(group, first), "part 0: expected a shard's part of the aggregates");
    refused(grouped(part, first), "part 0: expected a shard's part of the aggregates");
    refused(map.CombineRanges(1, {Aggregate::Count()}, {{first, part}}, &values), "expected a");
    // Truncated at any place, with extra bytes, or with any byte changed: the result is an error or
    // some values.
    for (size_t size = 0; size < part.size(); ++size)
      refused(ranges(part.substr(0, size), first), "part 0");
    for (size_t size = 0; size < group.size(); ++size) {
      refused(grouped(group.substr(0, size), first), "part 0");
    }
    refused(ranges(part + '\0', first), "truncated or damaged");
    refused(grouped(group + '\0', first), "truncated or damaged");
    size_t taken = 0;
    for (int i = 0; i < (kSmaller ? 300 : 3000); ++i) {
      std::string changed = i % 2 == 0 ? part : group;
      changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
      taken += (i % 2 == 0 ? ranges(changed, first) : grouped(changed, first)).ok() ? 1 : 0;
    }
    BOOST_TEST(taken > 0u);

    refused(map.AggregateRangesPart(*index, all, aggregates).status(), "OpenShard");
    refused(map.AggregateGroupsPart(*index, all, 1, aggregates, {}).status(), "OpenShard");
    refused(map.AggregateRangesPart(apart.shard(0), all, {Aggregate::Sum("price")}).status(),
            "includes no column 'price'");
    refused(map.CombineRanges(0, {Aggregate::Sum("price")}, {}, &values), "no column 'price'");
    const size_t too_many = index->codec().parts().size() + 1;
    for (const size_t parts : {size_t{0}, too_many}) {
      refused(map.AggregateGroupsPart(apart.shard(0), all, parts, {}, {}).status(),
              "leading parts");
      refused(map.CombineGroups(1, parts, {}, {}, {}, &groups), "leading parts");
    }
    RangeBatch behind = all;
    const Strings odd = {"odd"};
    behind.after = odd;
    refused(map.AggregateRangesPart(apart.shard(0), behind, aggregates).status(), "no cursors");
    refused(map.AggregateGroupsPart(apart.shard(0), behind, 1, {}, {}).status(),
            "after: expected a cursor of the same query");

    // Without ranges or shards: the columns have types, and each range has values.
    RequireOk(map.CombineRanges(0, {Aggregate::Sum("signed")}, {}, &values));
    BOOST_TEST(values[0].empty());
    BOOST_CHECK(values[0].type() == DataType::kI64);
    RequireOk(map.CombineRanges(2, {Aggregate::Count(), Aggregate::Min("text")}, {}, &values));
    BOOST_TEST(Described(values[0].value(1)) == "0");
    BOOST_TEST(values[1].is_null(1));
    RequireOk(map.CombineGroups(2, 1, {Aggregate::Count()}, {}, {}, &groups));
    BOOST_TEST(groups.offsets.back() == 0u);
    BOOST_TEST(groups.size() == 2u);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
