#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/failing_device.h"
#include "test/require_ok.h"

// Calls from a thread whose last CUDA call, made by the caller, has failed.
namespace cairn::gpu {
namespace {

using namespace failing;

// The caller's mistake; its error stays until somebody takes it.
void Fail() {
  BOOST_REQUIRE(cudaSetDevice(9999) == cudaErrorInvalidDevice);
  BOOST_REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
}

struct Fixture : NeedsDevice {
  ~Fixture() { (void)cudaGetLastError(); }
};

BOOST_FIXTURE_TEST_SUITE(earlier_error_test, Fixture)

BOOST_AUTO_TEST_CASE(batches_are_answered_and_the_error_is_left_to_the_caller) {
  for (const char* factory :
       {"gpu:packed", "gpu:packed,directory=tree", "gpu:btree", "gpu:fast", "gpu:pivot",
        "gpu:eytzinger", "gpu:sorted_array", "gpu:btree,method=brute"}) {
    const std::unique_ptr<OrderedIndex> index = MakeIndex(factory);
    Fail();
    for (size_t size : kSizes) {
      for (Operation operation : kAskedOperations) {
        const absl::Status status = Ask(*index, operation, Keys(size, size));
        BOOST_TEST(status.ok(), factory << ": " << status);
      }
    }
    BOOST_TEST(cudaGetLastError() == cudaErrorInvalidDevice);
  }
}

// CUB takes a thread's last error for its own.
BOOST_AUTO_TEST_CASE(calls_that_cannot_tell_it_from_their_own_say_whose_it_is) {
  const auto index = RequireOk(MakeDeviceIndex("gpu:packed", Run()));
  const DeviceArray<uint32_t> keys(Keys(100, 1));
  const DeviceArray<Position> begin(100);
  const DeviceArray<uint64_t> offsets(101);
  DeviceRanges ranges;
  ranges.lower = ranges.upper = DeviceKeys(keys.data(), keys.size());
  const auto plan = [&] {
    return index->PlanScan(ranges, 10, Order::kAscending, begin.data(), offsets.data(), nullptr);
  };
  Fail();
  for (const absl::Status& status : {plan(), MakeDeviceIndex("gpu:packed", Run()).status()}) {
    BOOST_TEST(absl::IsUnavailable(status), status);
    BOOST_TEST(absl::StrContains(status.message(), "none of Cairn's"), status);
    BOOST_TEST(absl::StrContains(status.message(), "cudaErrorInvalidDevice"), status);
  }
  BOOST_TEST(cudaGetLastError() == cudaErrorInvalidDevice);
  BOOST_TEST(plan().ok());
  BOOST_TEST(MakeDeviceIndex("gpu:packed", Run()).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
