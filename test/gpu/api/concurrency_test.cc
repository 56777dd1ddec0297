#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "cairn/ordered_index.h"
#include "gpu/host/query_context.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(concurrency_test, NeedsDevice)
namespace {

// Every thread executes batches of different sizes, small and large, of points and ranges. Expected
// results are computed: the keys are the even numbers, each with two rows.
void QueryWithEightThreads(const char* factory) {
  constexpr size_t kKeys = 300000;
  std::vector<uint64_t> keys(2 * kKeys);
  std::vector<RowId> rows(2 * kKeys);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i / 2 * 2;
    rows[i] = static_cast<RowId>(i);
  }
  const auto index = RequireOk(MakeOrderedIndex(factory, *SortedRun::FromSorted(keys, rows)));

  std::atomic<size_t> wrong{0}, failed{0};
  const auto query = [&](size_t thread) {
    auto random = TestRandom(thread);
    FindResult matches;
    for (int round = 0; round < 20; ++round) {
      // Some in chunks that are large batches of the device.
      const size_t size = random() % (round % 10 == 0 ? 800000 : 5000) + 1;
      std::vector<uint64_t> batch(size);
      for (uint64_t& key : batch) key = random() % (2 * kKeys);
      std::vector<RowId> first(size);
      failed += !index->Execute(Batch::FindFirst(batch, absl::MakeSpan(first))).ok();
      for (size_t i = 0; i < size; ++i) {
        wrong += first[i] != (batch[i] % 2 == 0 ? static_cast<RowId>(batch[i]) : kNoRow);
      }
      failed += !index->Execute(Batch::Find(batch, &matches)).ok();
      if (matches.size() != size) {
        ++wrong;
        continue;
      }
      for (size_t i = 0; i < size; ++i) {
        const std::vector<RowId> expected = {static_cast<RowId>(batch[i]),
                                             static_cast<RowId>(batch[i] + 1)};
        wrong += matches[i] !=
                 (batch[i] % 2 == 0 ? absl::MakeConstSpan(expected) : absl::Span<const RowId>());
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) threads.emplace_back(query, i);
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failed == 0u, factory);
  BOOST_TEST(wrong == 0u, factory);
}

BOOST_AUTO_TEST_CASE(eight_threads_query_one_index) {
  for (const char* factory :
       {"gpu:packed,directory=bitmap", "gpu:packed,directory=tree", "gpu:packed,rows", "gpu:btree",
        "gpu:fast", "gpu:pivot", "gpu:eytzinger", "gpu:sorted_array"}) {
    QueryWithEightThreads(factory);
  }
}

BOOST_AUTO_TEST_CASE(a_context_that_was_returned_is_leased_again) {
  FreeIdleQueryContexts(0);
  const QueryContext* first = nullptr;
  {
    auto context = RequireOk(QueryContextLease::Acquire(0));
    first = &*context;
    auto another = RequireOk(QueryContextLease::Acquire(0));
    BOOST_TEST(&*another != first);
  }
  auto context = RequireOk(QueryContextLease::Acquire(0));
  BOOST_TEST(&*context == first);
}

BOOST_AUTO_TEST_CASE(a_context_keeps_its_memory) {
  auto context = RequireOk(QueryContextLease::Acquire(0));
  const auto memory = RequireOk(context->Pinned(size_t{3} << 20));
  BOOST_TEST(*context->Pinned(1000) == memory);
  const auto positions = RequireOk(context->Positions(100000));
  BOOST_TEST(*context->Positions(10) == positions);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
