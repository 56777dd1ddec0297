// The shards that a batch queries, their slices, and the returned error.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/query.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_manifest.h"
#include "index/machine/mutex.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_batch_test)
namespace {

// Shard s gets `queries[s]` queries.
ShardAssignment AssignmentOf(const std::vector<size_t>& queries) {
  ShardAssignment assignment;
  assignment.begin.push_back(0);
  for (const size_t count : queries) {
    for (size_t i = 0; i < count; ++i) assignment.query_of.push_back(static_cast<uint32_t>(i));
    assignment.begin.push_back(assignment.query_of.size());
  }
  return assignment;
}

BOOST_AUTO_TEST_CASE(every_asked_shard_is_asked_once) {
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
    std::vector<size_t> expected;
    for (size_t s = 0; s < queries.size(); ++s) {
      if (queries[s] != 0) expected.push_back(s);
    }
    for (const size_t lanes : {1, 2, 3, 64}) {
      for (const int threads : {1, 4}) {
        const ShardedState state{routing, versions, threads, lanes};
        Mutex mutex;
        std::vector<size_t> asked;
        RequireOk(ForEachAskedShard(state, assignment, [&](size_t shard) {
          const MutexLock lock(&mutex);
          asked.push_back(shard);
          return absl::OkStatus();
        }));
        std::sort(asked.begin(), asked.end());
        BOOST_TEST(asked == expected, boost::test_tools::per_element());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_is_answered_in_slices_that_are_all_of_it) {
  ShardManifest manifest;
  manifest.mode = ShardMode::kSource;
  manifest.shards.resize(3);
  ShardRouting routing;
  BOOST_REQUIRE(ShardRouting::Create(manifest, PhysicalType::kU32, &routing));
  const ShardVersions versions;
  const size_t slice = size_t{1} << 14;
  for (const size_t size :
       {size_t{0}, size_t{1}, slice, 2 * slice - 1, 2 * slice, 2 * slice + 1, 7 * slice + 13}) {
    for (const int threads : {1, 3}) {
      std::vector<uint32_t> keys(size);
      std::iota(keys.begin(), keys.end(), 5);
      std::vector<GlobalRowId> rows(size, kNoGlobalRow);
      Explain explain;
      Batch batch = Batch::FindFirst(keys, absl::MakeSpan(rows));
      batch.explain = &explain;
      std::atomic<size_t> calls = 0;
      const ShardedState state{routing, versions, threads, 1};
      const auto answer = [&](const ShardedState& of_slice, const Batch& part) {
        ++calls;
        BOOST_TEST((size < 2 * slice || of_slice.threads == 1));
        for (size_t i = 0; i < part.size(); ++i) {
          part.rows[i] = MakeGlobalRowId(1, part.keys.u32()[i] * 2);
        }
        part.explain->queries = part.size();
        part.explain->reason = "it is a test";
        return absl::OkStatus();
      };
      RequireOk(AnswerInSlices(state, batch, answer));
      BOOST_TEST(calls == std::max<size_t>(1, size < 2 * slice ? 1 : size / slice));
      size_t wrong = 0;
      for (size_t i = 0; i < size; ++i) {
        wrong += rows[i] != MakeGlobalRowId(1, static_cast<RowId>(2 * (i + 5)));
      }
      BOOST_TEST(wrong == 0u);
      BOOST_TEST(explain.queries == size);
      BOOST_TEST(absl::EndsWith(explain.reason, "it is a test"));

      const absl::Status failed =
          AnswerInSlices(state, batch, [&](const ShardedState&, const Batch& part) {
            return part.empty() || part.keys.u32()[0] < 5 + 2 * slice
                       ? absl::OkStatus()
                       : absl::ResourceExhaustedError(absl::StrCat(part.keys.u32()[0]));
          });
      const bool fails = size >= 3 * slice;
      BOOST_TEST(failed == (fails ? absl::ResourceExhaustedError(absl::StrCat(5 + 2 * slice))
                                  : absl::OkStatus()));
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
