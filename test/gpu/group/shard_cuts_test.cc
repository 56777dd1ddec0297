#include "gpu/group/shard_cuts.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(shard_cuts_test)
namespace {

constexpr uint64_t kGreatestKey = std::numeric_limits<uint32_t>::max();

size_t BoundsAtMost(const std::vector<uint64_t>& bounds, uint64_t key) {
  BOOST_TEST(std::is_sorted(bounds.begin(), bounds.end()));
  return static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), key) - bounds.begin());
}

// Shards of these keys, each sorted: checks that the shard to which a query is routed has the
// result of all shards.
void CheckRouting(const std::vector<std::vector<uint32_t>>& shards) {
  std::vector<ShardKeys> ends;
  std::vector<uint32_t> all;
  std::vector<size_t> before = {0};
  for (const auto& shard : shards) {
    ends.push_back(shard.empty() ? ShardKeys{} : ShardKeys{false, shard.front(), shard.back()});
    all.insert(all.end(), shard.begin(), shard.end());
    before.push_back(all.size());
  }
  const ShardRouting routing = RequireOk(RouteShards(ends, kGreatestKey));
  BOOST_TEST(routing.first.size() < std::max<size_t>(1, shards.size()));
  BOOST_TEST(routing.last.size() < std::max<size_t>(1, shards.size()));
  std::vector<uint32_t> keys = {0, 1, UINT32_MAX - 1, UINT32_MAX};
  for (const uint32_t key : all) keys.insert(keys.end(), {key, key + 1, key - 1});
  for (const uint32_t key : keys) {
    const size_t first = BoundsAtMost(routing.first, key), last = BoundsAtMost(routing.last, key);
    BOOST_REQUIRE(first < shards.size());
    BOOST_REQUIRE(last < shards.size());
    const auto lower = [&](const std::vector<uint32_t>& in) {
      return static_cast<size_t>(std::lower_bound(in.begin(), in.end(), key) - in.begin());
    };
    const auto upper = [&](const std::vector<uint32_t>& in) {
      return static_cast<size_t>(std::upper_bound(in.begin(), in.end(), key) - in.begin());
    };
    BOOST_TEST(before[first] + lower(shards[first]) == lower(all));
    BOOST_TEST(before[last] + upper(shards[last]) == upper(all));
    const bool found = std::binary_search(all.begin(), all.end(), key);
    BOOST_TEST(std::binary_search(shards[first].begin(), shards[first].end(), key) == found);
    if (found) {
      // The first entry of all that have the key.
      BOOST_TEST(lower(all) - before[first] < shards[first].size());
    }
  }
}

BOOST_AUTO_TEST_CASE(parts_are_of_equal_sizes) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{1000},
                            (size_t{1} << 32) - 2, (size_t{1} << 60) + 12345}) {
    for (size_t parts = 1; parts <= 65; ++parts) {
      for (const size_t multiple : {1, 16, 64}) {
        BOOST_REQUIRE(CutOf(size, parts, 0, multiple) == 0u);
        BOOST_REQUIRE(CutOf(size, parts, parts, multiple) == size);
        for (size_t i = 0; i < parts; ++i) {
          const size_t first = CutOf(size, parts, i, multiple);
          const size_t end = CutOf(size, parts, i + 1, multiple);
          BOOST_REQUIRE(first <= end);
          BOOST_REQUIRE(first % multiple == 0);
          const size_t mean = size / parts;
          BOOST_REQUIRE(end - first <= mean + 2 * multiple);
          BOOST_REQUIRE(end - first + 2 * multiple >= mean);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_run_is_cut_without_a_copy) {
  std::vector<uint64_t> keys(1000);
  std::vector<RowId> rows(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i / 7, rows[i] = static_cast<RowId>(i);
  const SortedRun run = RequireOk(SortedRun::FromSorted(keys, rows));
  for (size_t parts : {1, 2, 3, 7, 64}) {
    const std::vector<SortedRun> cut = CutRun(run, parts);
    BOOST_REQUIRE(cut.size() == parts);
    const uint64_t* at = run.u64().data();
    for (const SortedRun& part : cut) {
      BOOST_TEST((part.kind() == PhysicalType::kU64));
      BOOST_TEST((part.u64().data() == at));
      BOOST_TEST(reinterpret_cast<uintptr_t>(at) % 64 == 0);
      BOOST_TEST(reinterpret_cast<uintptr_t>(part.row_ids().data()) % 64 == 0);
      at += part.size();
      RequireOk(part.CheckOrder());
    }
    BOOST_TEST((at == run.u64().data() + run.size()));
  }
}

BOOST_AUTO_TEST_CASE(one_shard_is_asked_for_each_key) {
  const uint32_t most = UINT32_MAX;
  CheckRouting({{}});
  CheckRouting({{5}});
  CheckRouting({{}, {}, {}});
  CheckRouting({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  CheckRouting({{1, 5, 5}, {5, 5, 5}, {5, 5, 9}});     // a key spans three
  CheckRouting({{5, 5}, {5, 5}, {5, 5}});              // all are equal
  CheckRouting({{0, 0}, {0, 0}, {0, 1}});              // the least
  CheckRouting({{most, most}, {most, most}, {most}});  // the greatest
  CheckRouting({{1, most}, {most, most}, {}, {most}});
  CheckRouting({{1, 2}, {most, most}});
  CheckRouting({{}, {3, 4}, {}, {}, {4, 6}, {}, {7}, {}});
  CheckRouting({{}, {0, most}, {}});
  CheckRouting({{3, 3}, {}, {3, 3}, {}, {3, 4}});
}

BOOST_AUTO_TEST_CASE(one_shard_is_asked_for_each_key_of_random_ones) {
  for (uint64_t round = 0; round < 200; ++round) {
    auto random = TestRandom(round);
    const uint64_t distinct = 1 + random() % 20;
    std::vector<uint32_t> keys(random() % 40);
    for (uint32_t& key : keys) {
      key = static_cast<uint32_t>(random() % distinct);
      if (round % 3 == 0) key = UINT32_MAX - key;
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::vector<uint32_t>> shards(1 + random() % 8);
    std::vector<size_t> cuts = {0, keys.size()};
    for (size_t i = 1; i < shards.size(); ++i) cuts.push_back(random() % (keys.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    for (size_t i = 0; i < shards.size(); ++i) {
      shards[i].assign(keys.begin() + static_cast<std::ptrdiff_t>(cuts[i]),
                       keys.begin() + static_cast<std::ptrdiff_t>(cuts[i + 1]));
    }
    CheckRouting(shards);
  }
}

BOOST_AUTO_TEST_CASE(shards_out_of_order_are_refused) {
  const std::vector<ShardKeys> back = {{false, 5, 9}, {true, 0, 0}, {false, 8, 10}};
  const absl::Status refused = RouteShards(back, kGreatestKey).status();
  BOOST_TEST(absl::IsInvalidArgument(refused));
  BOOST_TEST(std::string(refused.message()).find("shard 2 begins at key 8, before key 9") !=
             std::string::npos);
  const std::vector<ShardKeys> crossed = {{false, 9, 5}};
  BOOST_TEST(absl::IsInvalidArgument(RouteShards(crossed, kGreatestKey).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
