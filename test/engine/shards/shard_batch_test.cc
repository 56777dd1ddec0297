// Which shards of a batch are asked, on how many threads, and whose error comes back.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/shards/shard_batch.h"
#include "test/require_ok.h"

namespace cairn {
namespace {

// Shard s is asked `queries[s]` queries.
ShardAssignment AssignmentOf(const std::vector<size_t>& queries) {
  ShardAssignment assignment;
  assignment.begin.push_back(0);
  for (const size_t count : queries) {
    for (size_t i = 0; i < count; ++i) assignment.query_of.push_back(static_cast<uint32_t>(i));
    assignment.begin.push_back(assignment.query_of.size());
  }
  return assignment;
}

BOOST_AUTO_TEST_SUITE(shard_batch_test)

BOOST_AUTO_TEST_CASE(every_asked_shard_is_asked_once_and_each_lane_by_a_thread_of_its_own) {
  const ShardRouting routing;
  const ShardVersions versions;
  const std::vector<std::vector<size_t>> batches = {
      {},
      {0, 0, 0},
      {5},
      {1, 0, 2, 1},
      {3000, 0, 3000, 3000, 0, 0, 1},
      {100000, 0, 7, 0, 0, 40000, 1, 1},
      std::vector<size_t>(40, 2000),
  };
  for (const std::vector<size_t>& queries : batches) {
    const ShardAssignment assignment = AssignmentOf(queries);
    for (const size_t lanes : {1, 2, 3, 64}) {
      for (const int threads : {1, 4}) {
        const ShardedState state{routing, versions, threads, lanes};
        std::mutex mutex;
        std::vector<size_t> asked;
        std::vector<std::set<std::thread::id>> of_lane(lanes);
        std::set<std::thread::id> all;
        RequireOk(ForEachAskedShard(state, assignment, [&](size_t shard) {
          const std::lock_guard<std::mutex> lock(mutex);
          asked.push_back(shard);
          of_lane[shard % lanes].insert(std::this_thread::get_id());
          all.insert(std::this_thread::get_id());
          return absl::OkStatus();
        }));
        std::vector<size_t> expected;
        std::set<size_t> lanes_asked;
        for (size_t s = 0; s < queries.size(); ++s) {
          if (queries[s] == 0) continue;
          expected.push_back(s);
          lanes_asked.insert(s % lanes);
        }
        std::sort(asked.begin(), asked.end());
        BOOST_TEST(asked == expected, boost::test_tools::per_element());
        if (lanes == 1 || expected.empty()) continue;
        for (const auto& ids : of_lane) BOOST_TEST(ids.size() <= 1u);
        const bool worth = assignment.query_of.size() >= 4096 && expected.size() > 1;
        BOOST_TEST(all.size() == (worth ? lanes_asked.size() : 1u));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_first_shards_error_comes_back) {
  const ShardRouting routing;
  const ShardVersions versions;
  for (const size_t each : {10, 5000}) {
    const ShardAssignment assignment = AssignmentOf(std::vector<size_t>(6, each));
    for (const size_t lanes : {1, 2, 6}) {
      const ShardedState state{routing, versions, 2, lanes};
      std::atomic<int> asked = 0;
      const absl::Status status = ForEachAskedShard(state, assignment, [&](size_t shard) {
        ++asked;
        return shard < 2 ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("shard ", shard));
      });
      BOOST_TEST(status == absl::UnavailableError("shard 2"), status);
      BOOST_TEST(asked >= 3);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
