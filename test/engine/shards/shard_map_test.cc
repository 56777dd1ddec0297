// Compares shards queried one by one through a ShardMap with the index that has all of them open.
#include "cairn/sharding.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "test/engine/shard_build/shard_steps.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_map_test)
namespace {

namespace fs = std::filesystem;

// All shards of a map, opened separately.
std::vector<std::unique_ptr<SecondaryIndex>> OpenAll(const ShardMap& map) {
  std::vector<std::unique_ptr<SecondaryIndex>> shards;
  for (uint32_t s = 0; s < map.shards().size(); ++s) {
    shards.push_back(RequireOk(map.OpenShard(s, ForTests())));
  }
  return shards;
}

// The part of a batch for one shard.
std::vector<uint32_t> Part(const ShardQueries& queries, size_t shard) {
  const auto begin = queries.query_of.begin();
  return {begin + static_cast<ptrdiff_t>(queries.begin[shard]),
          begin + static_cast<ptrdiff_t>(queries.begin[shard + 1])};
}

std::vector<GlobalRowId> FoundByShards(const ShardMap& map, const std::vector<std::string>& keys) {
  std::vector<std::string_view> views(keys.begin(), keys.end());
  ShardQueries queries;
  RequireOk(map.RouteKeys(views, &queries));
  BOOST_REQUIRE_EQUAL(queries.begin.size(), map.shards().size() + 1);
  const auto shards = OpenAll(map);
  std::vector<std::vector<GlobalRowId>> found(keys.size());
  for (uint32_t s = 0; s < shards.size(); ++s) {
    const std::vector<uint32_t> part = Part(queries, s);
    BOOST_REQUIRE(std::is_sorted(part.begin(), part.end()));
    std::vector<std::string_view> asked;
    for (const uint32_t query : part) asked.push_back(views[query]);
    FindResult matches;
    RequireOk(shards[s]->Find(asked, &matches));
    for (size_t i = 0; i < part.size(); ++i) {
      for (const RowId row : matches[i]) found[part[i]].push_back(MakeGlobalRowId(s, row));
    }
  }
  std::vector<GlobalRowId> all;
  for (const auto& rows : found) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

BOOST_AUTO_TEST_CASE(shards_asked_one_by_one_have_the_answers_of_all) {
  for (const uint32_t shards : {1, 2, 5}) {
    Steps steps(500);
    steps.Extract(2);
    steps.BuildAll(steps.Split(shards));
    RequireOk(steps.Publish());
    const auto map = RequireOk(ShardMap::Open(steps.index()));
    BOOST_TEST(map->generation() == 1u);
    BOOST_TEST((map->mode() == ShardMode::kKeyRange));
    BOOST_TEST(map->spec().ToString() == kShardSpec);
    const auto index = steps.Open();
    const IndexStats stats = RequireOk(index->Stats());
    BOOST_REQUIRE_EQUAL(map->shards().size(), stats.shards.size());
    for (size_t s = 0; s < stats.shards.size(); ++s) {
      BOOST_TEST(map->shards()[s].directory == stats.shards[s].directory);
      BOOST_TEST(map->shards()[s].bounds == stats.shards[s].bounds);
      BOOST_TEST(map->shards()[s].entries == stats.shards[s].entries);
    }
    std::vector<std::string> keys = {"", "heavy", "heavy\0", "zz", "0", "heav"};
    for (int i = 0; i < 60; ++i) keys.push_back(std::to_string(i));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    FindResult matches;
    RequireOk(index->Find(views, &matches));
    std::vector<GlobalRowId> expected;
    for (size_t j = 0; j < matches.row_ids.size(); ++j) expected.push_back(matches.row(j));
    BOOST_TEST(FoundByShards(*map, keys) == expected);
    // Ranges: counts are sums.
    std::vector<std::string_view> lower, upper;
    for (size_t i = 0; i < views.size(); ++i) {
      lower.push_back(views[i]);
      upper.push_back(views[(i * 7 + 3) % views.size()]);
    }
    const RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
    std::vector<uint64_t> counts(views.size()), sums(views.size());
    RequireOk(index->Count(ranges, absl::MakeSpan(counts)));
    ShardQueries queries;
    RequireOk(map->RouteRanges(ranges, &queries));
    const auto opened = OpenAll(*map);
    for (size_t s = 0; s < opened.size(); ++s) {
      for (const uint32_t query : Part(queries, s)) {
        uint64_t count = 0;
        RequireOk(opened[s]->Count(ranges.Slice(query, 1), absl::MakeSpan(&count, 1)));
        sums[query] += count;
      }
    }
    BOOST_TEST(sums == counts);
  }
}

BOOST_AUTO_TEST_CASE(batches_that_are_none_are_refused) {
  Steps steps(50);
  steps.Extract(1);
  steps.BuildAll(steps.Split(2));
  RequireOk(steps.Publish());
  const auto map = RequireOk(ShardMap::Open(steps.index()));
  ShardQueries queries;
  const std::vector<uint64_t> numbers = {1};
  BOOST_TEST(absl::IsInvalidArgument(map->RouteKeys(numbers, &queries)));
  BOOST_TEST(absl::IsInvalidArgument(map->RouteRanges(RangeBatch::Equal(numbers), &queries)));
  const std::vector<std::string_view> none;
  RequireOk(map->RouteKeys(none, &queries));
  BOOST_TEST(queries.query_of.empty());
  BOOST_TEST(queries.begin.size() == 3u);
  BOOST_TEST(absl::IsOutOfRange(map->OpenShard(2, ForTests()).status()));
  BOOST_TEST(absl::IsNotFound(ShardMap::Open(steps.work() + "/none").status()));
  // An unsharded index.
  BOOST_TEST(
      absl::IsNotFound(ShardMap::Open(steps.index() + "/" + map->shards()[0].directory).status()));
}

BOOST_AUTO_TEST_CASE(a_shard_that_is_missing_or_another_is_refused_by_name) {
  Steps steps(100);
  steps.Extract(1);
  steps.BuildAll(steps.Split(3));
  RequireOk(steps.Publish());
  const auto map = RequireOk(ShardMap::Open(steps.index()));
  const std::string name = map->shards()[1].directory;
  const std::string path = steps.index() + "/" + name, aside = steps.work() + "/aside";
  fs::rename(path, aside);
  absl::Status status = map->OpenShard(1, ForTests()).status();
  BOOST_TEST(absl::IsDataLoss(status), status);
  BOOST_TEST(Says(status, name), status);
  BOOST_TEST(Says(status, "missing"), status);
  RequireOk(map->OpenShard(0, ForTests()).status());
  // Another shard in its place.
  fs::copy(steps.index() + "/" + map->shards()[0].directory, path, fs::copy_options::recursive);
  status = map->OpenShard(1, ForTests()).status();
  BOOST_TEST(absl::IsDataLoss(status), status);
  BOOST_TEST(Says(status, "not the published one"), status);
}

BOOST_AUTO_TEST_CASE(a_map_says_when_its_generation_is_gone) {
  Steps steps(100);
  steps.Extract(1);
  steps.BuildAll(steps.Split(2));
  RequireOk(steps.Publish());
  const auto before = RequireOk(ShardMap::Open(steps.index()));
  const auto open = RequireOk(before->OpenShard(0, ForTests()));
  steps.db().Put("later", "aa");
  steps.Extract(1);
  steps.BuildAll(steps.Split(2));
  RequireOk(steps.Publish());
  const absl::Status status = before->OpenShard(1, ForTests()).status();
  BOOST_TEST(absl::IsFailedPrecondition(status), status);
  BOOST_TEST(Says(status, "generation 1"), status);
  BOOST_TEST(RequireOk(ShardMap::Open(steps.index()))->generation() == 2u);
  // An open shard stays usable.
  BOOST_TEST(RequireOk(open->Stats()).entries == before->shards()[0].entries);
}

BOOST_AUTO_TEST_CASE(a_shards_file_that_is_damaged_is_data_loss) {
  Steps steps(60);
  steps.Extract(1);
  steps.BuildAll(steps.Split(2));
  RequireOk(steps.Publish());
  const std::string path = steps.index() + "/SHARDS", bytes = ReadAll(path);
  for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 40) {
    std::string damaged = bytes;
    damaged[at] ^= 8;
    WriteAll(path, damaged);
    const absl::Status status = ShardMap::Open(steps.index()).status();
    BOOST_TEST((absl::IsDataLoss(status) || absl::IsFailedPrecondition(status)), status);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
