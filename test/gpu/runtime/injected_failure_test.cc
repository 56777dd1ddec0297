#include "gpu/runtime/injected_failure.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "gpu/host/query_context.h"
#include "gpu/runtime/device_memory.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/failing_device.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(injected_failure_test, NeedsDevice)
namespace {

using namespace failing;
using std::chrono::milliseconds;

// Makes the first, the second, ... CUDA call of a batch fail, until the batch makes no more calls;
// returns the number of calls. After each failure the batch is executed again.
int FailEveryCall(const OrderedIndex& index, Operation operation,
                  const std::vector<uint32_t>& keys) {
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0;; ++i) {
    FailDeviceCallsAfter(i);
    const absl::Status status = Ask(index, operation, keys);
    FailDeviceCallsAfter(-1);
    if (status.ok()) return i;
    BOOST_TEST(absl::IsUnavailable(status), "at call " << i << ": " << status);
    BOOST_TEST(AllocatedDeviceBytes() == before, "after call " << i);
    const absl::Status again = Ask(index, operation, keys);
    BOOST_REQUIRE_MESSAGE(again.ok(), "after call " << i << ": " << again);
    BOOST_REQUIRE(i < 1000);
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_fails_at_any_call_leaves_an_index_that_answers) {
  for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree", "gpu:btree"}) {
    const std::unique_ptr<OrderedIndex> index = MakeIndex(factory);
    for (Operation operation : kAskedOperations) {
      BOOST_TEST_CONTEXT(factory << ", operation " << static_cast<int>(operation)) {
        // Given to the device and waited for, once or for each of four chunks.
        const int least[] = {2, 2, 8};
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          const int calls = FailEveryCall(*index, operation, Keys(kSizes[i], i));
          // Rows of a large batch are copied in pieces.
          const bool rows = operation == Operation::kFind || operation == Operation::kScan;
          if (rows && i > 0) {
            BOOST_TEST(calls > least[i], kSizes[i] << " keys");
          } else {
            BOOST_TEST(calls == least[i], kSizes[i] << " keys");
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_lost_context_is_freed_and_one_that_ran_out_of_memory_is_kept) {
  const std::unique_ptr<OrderedIndex> index = MakeIndex();
  const std::vector<uint32_t> keys = Keys(300000, 1);
  FreeIdleQueryContexts(0);
  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  BOOST_TEST(FreeIdleQueryContexts(0) == 1u);

  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  FailDeviceAllocationsAfter(2);
  BOOST_TEST(absl::IsResourceExhausted(Ask(*index, Operation::kLowerBound, keys)));
  FailDeviceAllocationsAfter(-1);
  BOOST_TEST(FreeIdleQueryContexts(0) == 1u);

  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  FailDeviceCallsAfter(3);
  BOOST_TEST(absl::IsUnavailable(Ask(*index, Operation::kLowerBound, keys)));
  FailDeviceCallsAfter(-1);
  BOOST_TEST(FreeIdleQueryContexts(0) == 0u);
}

BOOST_AUTO_TEST_CASE(threads_get_right_answers_or_an_error_while_calls_fail_now_and_then) {
  const std::unique_ptr<OrderedIndex> index = MakeIndex();
  std::atomic<size_t> answered{0}, failed{0}, wrong{0}, running{6};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i, keys = Keys(kSizes[i % 3], i)] {
      for (size_t round = i; round < i + 60; ++round) {
        const absl::Status status =
            Ask(*index, kAskedOperations[round % std::size(kAskedOperations)], keys);
        if (status.ok()) {
          ++answered;
        } else if (absl::IsUnavailable(status)) {
          ++failed;
        } else {
          ++wrong;
        }
      }
      --running;
    });
  }
  for (int64_t count = 0; running > 0; count = (count + 1) % 13) {
    FailDeviceCallsAfter(count);
    std::this_thread::sleep_for(milliseconds(1));
    FailDeviceCallsAfter(-1);
    std::this_thread::sleep_for(milliseconds(2));
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(answered > 0u);
  BOOST_TEST(failed > 0u);
  for (size_t size : kSizes) {
    for (Operation operation : kAskedOperations) {
      const absl::Status status = Ask(*index, operation, Keys(size, size));
      BOOST_TEST(status.ok(), status);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
