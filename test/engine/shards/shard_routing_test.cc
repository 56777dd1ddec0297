// Routing, compared with an examination of every shard's bounds.
#include "engine/shards/shard_routing.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_routing_test)
namespace {

// Entries are (key, row), both one letter.
using Entry = std::pair<std::string, std::string>;

std::vector<std::string> Letters() {
  return {"", "a", "aa", "ab", "b", "b\xff", "c"};
}

ShardManifest RandomShards(std::mt19937_64* random) {
  std::set<Entry> cuts;
  const std::vector<std::string> letters = Letters();
  for (uint64_t n = (*random)() % 6; n > 0; --n) {
    cuts.emplace(letters[1 + (*random)() % (letters.size() - 1)], letters[(*random)() % 3]);
  }
  ShardManifest manifest;
  manifest.shards.resize(cuts.size() + 1);
  size_t i = 0;
  for (const Entry& cut : cuts) {
    manifest.shards[i].upper = ShardBound{cut.first, cut.second};
    manifest.shards[++i].lower = ShardBound{cut.first, cut.second};
  }
  for (i = 0; i < manifest.shards.size(); ++i) {
    manifest.shards[i].directory = "shard" + std::to_string(i);
  }
  return manifest;
}

uint32_t ShardOf(const ShardManifest& manifest, const Entry& entry) {
  uint32_t shard = 0;
  const ShardBound place = {entry.first, entry.second};
  while (manifest.shards[shard].upper && !(place < *manifest.shards[shard].upper)) ++shard;
  return shard;
}

bool Within(const std::string& key, const RangeBatch& range) {
  const std::string_view lower = range.lower.bytes()[0], upper = range.upper.bytes()[0];
  const Bound from = range.lower_bound_of(0), to = range.upper_bound_of(0);
  if (from == Bound::kInclusive && key < lower) return false;
  if (from == Bound::kExclusive && key <= lower) return false;
  if (to == Bound::kInclusive) return key <= upper;
  if (to == Bound::kExclusive) return key < upper;
  if (to == Bound::kPrefix) {
    return from == Bound::kOpen ? std::string_view(key).substr(0, lower.size()) <= lower
                                : std::string_view(key).substr(0, lower.size()) == lower;
  }
  return true;
}

BOOST_AUTO_TEST_CASE(every_entry_is_in_a_shard_that_its_key_and_ranges_are_sent_to) {
  std::mt19937_64 random = TestRandom();
  const std::vector<std::string> letters = Letters();
  std::vector<Entry> entries;
  for (const std::string& key : letters) {
    for (const std::string& row : letters) entries.emplace_back(key, row);
  }
  for (int round = 0; round < 300; ++round) {
    const ShardManifest manifest = RandomShards(&random);
    BOOST_REQUIRE(CheckShards(manifest).ok());
    ShardRouting routing;
    BOOST_REQUIRE(ShardRouting::Create(manifest, PhysicalType::kBytes, &routing));
    for (const auto& [key, row] : entries) {
      const std::string_view keys[] = {key};
      ShardInterval interval;
      routing.RouteKeys(keys, absl::MakeSpan(&interval, 1));
      const uint32_t shard = ShardOf(manifest, {key, row});
      BOOST_REQUIRE(interval.first <= shard && shard <= interval.last);
      BOOST_REQUIRE_EQUAL(routing.ShardOfEntry(keys, 0, row), shard);
    }
    for (int i = 0; i < 100; ++i) {
      const std::string_view lower[] = {letters[random() % letters.size()]};
      const std::string_view upper[] = {letters[random() % letters.size()]};
      RangeBatch range = RangeBatch::HalfOpen(lower, upper);
      range.lower_bound = static_cast<Bound>(random() % 3);
      range.upper_bound = static_cast<Bound>(random() % 4);
      ShardInterval interval;
      routing.RouteRanges(range, absl::MakeSpan(&interval, 1));
      for (const Entry& entry : entries) {
        if (!Within(entry.first, range)) continue;
        const uint32_t shard = ShardOf(manifest, entry);
        BOOST_REQUIRE(interval.first <= shard && shard <= interval.last);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_no_cut_is_within_goes_to_one_shard) {
  ShardManifest manifest;
  manifest.shards.resize(3);
  manifest.shards[0].upper = manifest.shards[1].lower = ShardBound{std::string(4, '\1'), ""};
  manifest.shards[1].upper = manifest.shards[2].lower = ShardBound{std::string(4, '\2'), "row"};
  ShardRouting routing;
  BOOST_REQUIRE(ShardRouting::Create(manifest, PhysicalType::kU32, &routing));
  const std::vector<uint32_t> keys = {0,          0x01010100, 0x01010101, 0x01010102,
                                      0x02020201, 0x02020202, 0x02020203, UINT32_MAX};
  std::vector<ShardInterval> intervals(keys.size());
  routing.RouteKeys(keys, absl::MakeSpan(intervals));
  const std::vector<ShardInterval> expected = {{0, 0}, {0, 0}, {1, 1}, {1, 1},
                                               {1, 1}, {1, 2}, {2, 2}, {2, 2}};
  BOOST_CHECK(intervals == expected);
  // Those bounds are not keys of eight bytes.
  BOOST_CHECK(!ShardRouting::Create(manifest, PhysicalType::kU64, &routing));
}

BOOST_AUTO_TEST_CASE(queries_are_assigned_to_each_shard_of_their_interval) {
  const std::vector<ShardInterval> intervals = {{0, 0}, {2, 2}, {1, 2}, {1, 0}, {0, 2}};
  const ShardAssignment assignment = Assign(intervals, 3);
  const std::vector<std::vector<uint32_t>> expected = {{0, 4}, {2, 4}, {1, 2, 4}};
  for (size_t s = 0; s < expected.size(); ++s) {
    BOOST_TEST(std::vector<uint32_t>(assignment.queries(s).begin(), assignment.queries(s).end()) ==
                   expected[s],
               boost::test_tools::per_element());
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
