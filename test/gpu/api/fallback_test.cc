// A router whose GPU fails in mid-flight: the CPU answers.
#include <cuda_runtime.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "engine/route/router.h"
#include "gpu/runtime/injected_failure.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(fallback_test)
namespace {

constexpr size_t kEntries = size_t{1} << 18;

// Key 2 i has row i.
SortedRun Run() {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(2 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(keys, rows);
}

struct Fixture : NeedsDevice {
  ResidentIndexes resident;
  std::unique_ptr<IndexRouter> router;

  Fixture() {
    OpenOptions options;
    options.device = SearchDevice::kAuto;
    auto made = RequireOk(MakeResidentIndexes(options, Run()));
    resident = std::move(made);
    BOOST_TEST(resident.fallback == "");
    router = std::make_unique<IndexRouter>(resident, Run(), 1,
                                           IndexRouterOptions{Calibration::kTrials, 2});
  }
  ~Fixture() { FailDeviceCallsAfter(-1); }

  // The route that answered, or an error. It is the GPU's, unless that has failed.
  std::string Ask(size_t size, Explain* explain) const {
    std::vector<uint32_t> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<uint32_t>(i * 7 % (2 * kEntries));
    std::vector<RowId> rows(size, 12345);
    Batch batch = Batch::FindFirst(keys, absl::MakeSpan(rows));
    batch.options.route = "gpu:packed";
    batch.explain = explain;
    const absl::Status status = router->Execute(batch);
    if (!status.ok()) return status.ToString();
    for (size_t i = 0; i < size; ++i) {
      const RowId expected = keys[i] % 2 == 0 ? keys[i] / 2 : kNoRow;
      if (rows[i] != expected) return "a wrong answer";
    }
    return explain->route;
  }
};

BOOST_FIXTURE_TEST_CASE(a_batch_that_fails_on_the_device_is_answered_by_the_cpu, Fixture) {
  Explain explain;
  for (const size_t size : {1, 1000, 20000, 500000})
    BOOST_TEST(Ask(size, &explain) == "gpu:packed");
  FailDeviceCallsAfter(0);
  const std::string route = Ask(500000, &explain);
  BOOST_TEST(absl::StartsWith(route, "cpu:packed"), route);
  BOOST_REQUIRE(explain.failures.size() == 1u);
  BOOST_TEST(absl::StartsWith(explain.failures[0], "gpu:packed: "));
  // Later batches are routed away, and the device is not touched.
  BOOST_TEST(absl::StartsWith(Ask(500000, &explain), "cpu:packed"));
  BOOST_TEST(explain.failures.empty());
  BOOST_TEST(absl::StrContains(explain.reason, "failed earlier"));
  for (const RouteStats& stats : router->router().Stats()) {
    BOOST_TEST(stats.failures == (stats.route == "gpu:packed" ? 1u : 0u));
  }
}

BOOST_FIXTURE_TEST_CASE(no_answer_of_many_threads_is_lost_when_the_device_fails, Fixture) {
  std::atomic<int> wrong = 0;
  std::atomic<int> by_cpu = 0;
  std::vector<std::thread> threads;
  FailDeviceCallsAfter(100);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Explain explain;
      for (int i = 0; i < 100; ++i) {
        const std::string route = Ask(static_cast<size_t>(1 + i * 97), &explain);
        if (absl::StartsWith(route, "cpu:packed")) {
          ++by_cpu;
        } else if (route != "gpu:packed") {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(by_cpu > 0);
  uint64_t batches = 0;
  for (const RouteStats& stats : router->router().Stats()) batches += stats.batches;
  BOOST_TEST(batches == 800u);
}

// A build without code for the device, as an A100 meets one for an H200.
BOOST_FIXTURE_TEST_CASE(an_index_opens_on_the_cpu_where_no_kernel_runs, NeedsDevice) {
  for (const cudaError_t error :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidPtx, cudaErrorUnsupportedPtxVersion}) {
    OpenOptions options;
    options.device = SearchDevice::kAuto;
    FailLaunchesWith(error);
    const auto made = MakeResidentIndexes(options, Run());
    options.device = SearchDevice::kGpu;
    const absl::Status refused = MakeResidentIndexes(options, Run()).status();
    FailLaunchesWith(0);
    RequireOk(made);
    BOOST_TEST(absl::StrContains(made->fallback, cudaGetErrorName(error)), made->fallback);
    BOOST_TEST(made->indexes.size() == 1u);
    for (const ResidentIndex& index : made->indexes) BOOST_TEST(!index.on_gpu);
    BOOST_TEST(absl::IsUnavailable(refused), refused);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
