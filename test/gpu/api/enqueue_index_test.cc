#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/device.h"
#include "gpu/host/gpu_index.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/device_faults.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Builds that do not wait.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(enqueue_index_test, NeedsDevice)
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kFactories[] = {"gpu:btree",
                                      "gpu:btree,order=8,fill=0.5",
                                      "gpu:fast",
                                      "gpu:pivot",
                                      "gpu:pivot,k=2",
                                      "gpu:eytzinger",
                                      "gpu:eytzinger,k=2",
                                      "gpu:sorted_array,aos",
                                      "gpu:sorted_array,soa"};

// A run's entries in device memory, in another order.
template <typename Key>
struct Shuffled {
  // If `rows_ascend`, the rows of each key keep their order.
  Shuffled(const SortedRun& run, bool rows_ascend, uint64_t salt)
      : Shuffled(Order(run, rows_ascend, salt), run) {}

  absl::StatusOr<std::unique_ptr<DeviceIndex>> Enqueue(std::string_view factory, bool rows_ascend,
                                                       cudaStream_t stream) const {
    return EnqueueDeviceIndex(factory, DeviceKeys(keys.data(), keys.size()), rows.data(),
                              rows_ascend, stream);
  }

  DeviceArray<Key> keys;
  DeviceArray<RowId> rows;

 private:
  static std::vector<size_t> Order(const SortedRun& run, bool rows_ascend, uint64_t salt) {
    std::vector<size_t> order(run.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), TestRandom(salt));
    if (rows_ascend) {
      const auto rows = run.row_ids();
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return rows[a] < rows[b]; });
    }
    return order;
  }
  Shuffled(const std::vector<size_t>& order, const SortedRun& run)
      : keys(Pick(order, run.keys<Key>())), rows(Pick(order, run.row_ids())) {
    BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // copies may still be on their way
  }
  template <typename T>
  static std::vector<T> Pick(const std::vector<size_t>& order, absl::Span<const T> values) {
    std::vector<T> picked;
    for (size_t i : order) picked.push_back(values[i]);
    return picked;
  }
};

template <typename Key>
void CheckFactory(const char* factory, bool rows_ascend) {
  const Stream stream = RequireOk(Stream::Create());
  uint64_t salt = 0;
  for (const OracleData<Key>& data : OracleCatalogue<Key>(2000)) {
    BOOST_TEST_CONTEXT(factory << ", rows ascend: " << rows_ascend) {
      const SortedRun run = OracleRun(data);
      const Shuffled<Key> entries(run, rows_ascend, ++salt);
      auto index = RequireOk(entries.Enqueue(factory, rows_ascend, stream.get()));
      BOOST_TEST(index->size() == run.size());
      RequireOk(stream.Wait());
      CheckAgainstOracle(GpuIndex(run, std::move(index)), data);
    }
  }
}

// Key 3 i has row i, for i < n.
SortedRun SomeRun(size_t n) {
  std::vector<uint32_t> keys(n);
  std::vector<RowId> rows(n);
  for (size_t i = 0; i < n; ++i) {
    keys[i] = static_cast<uint32_t>(3 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
}

BOOST_AUTO_TEST_CASE(all_structures_answer_as_binary_search_does) {
  for (const char* factory : kFactories) {
    CheckFactory<uint32_t>(factory, false);
    CheckFactory<uint64_t>(factory, true);
  }
}

// The stream is busy for much longer than the calls take. Queries enqueued after the build are
// answered, and the index may be destroyed before it is built.
BOOST_AUTO_TEST_CASE(nobody_waits) {
  constexpr size_t kEntries = 300000;
  const SortedRun run = SomeRun(kEntries);
  const Shuffled<uint32_t> entries(run, false, 1);
  for (const char* factory : kFactories) {
    BOOST_TEST_CONTEXT(factory) {
      const Stream stream = RequireOk(Stream::Create());
      DeviceArray<RowId> rows(kEntries);
      const DeviceBatch batch =
          DeviceBatch::FindFirst(DeviceKeys(entries.keys.data(), kEntries), rows.data());
      for (const bool warm_up : {true, false}) {  // which loads kernels
        const size_t before = AllocatedDeviceBytes();
        constexpr milliseconds kBusy(400);
        if (!warm_up) BOOST_REQUIRE(DelayStream(kBusy, stream.get()) == cudaSuccess);
        const Clock::time_point start = Clock::now();
        auto index = RequireOk(entries.Enqueue(factory, false, stream.get()));
        RequireOk(index->Execute(batch, stream.get()));
        index.reset();
        if (!warm_up) {
          BOOST_TEST((Clock::now() - start < kBusy / 2));
          BOOST_TEST((cudaStreamQuery(stream.get()) == cudaErrorNotReady));
          (void)cudaGetLastError();
        }
        RequireOk(stream.Wait());
        BOOST_TEST(AllocatedDeviceBytes() == before);
        BOOST_TEST((rows.ToHost() == entries.rows.ToHost()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(other_streams_that_wait_see_the_index) {
  const SortedRun run = SomeRun(100000);
  const Shuffled<uint32_t> entries(run, false, 2);
  const Stream stream = RequireOk(Stream::Create()), other = RequireOk(Stream::Create());
  cudaEvent_t built = nullptr;
  BOOST_REQUIRE(cudaEventCreateWithFlags(&built, cudaEventDisableTiming) == cudaSuccess);
  BOOST_REQUIRE(DelayStream(milliseconds(50), stream.get()) == cudaSuccess);
  const auto index = RequireOk(entries.Enqueue("gpu:fast", true, stream.get()));
  BOOST_REQUIRE(cudaEventRecord(built, stream.get()) == cudaSuccess);
  BOOST_REQUIRE(cudaStreamWaitEvent(other.get(), built) == cudaSuccess);
  DeviceArray<RowId> rows(run.size());
  RequireOk(index->Execute(
      DeviceBatch::FindFirst(DeviceKeys(entries.keys.data(), run.size()), rows.data()),
      other.get()));
  RequireOk(other.Wait());
  BOOST_TEST((rows.ToHost() == entries.rows.ToHost()));
  BOOST_TEST(cudaEventDestroy(built) == cudaSuccess);
}

BOOST_AUTO_TEST_CASE(entries_without_rows_have_keys_alone) {
  const DeviceArray<uint32_t> keys(std::vector<uint32_t>{7, 5, 9});
  const DeviceArray<RowId> rows(std::vector<RowId>{1, kNoRow, 3});
  const DeviceArray<uint32_t> queries(std::vector<uint32_t>{5, 6, 7, 9, 10});
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const Stream stream = RequireOk(Stream::Create());
  for (const char* factory : kFactories) {
    const auto index = RequireOk(
        EnqueueDeviceIndex(factory, DeviceKeys(keys.data(), 3), rows.data(), false, stream.get()));
    const DeviceArray<RowId> found(5);
    const DeviceArray<Position> positions(5);
    const DeviceKeys asked(queries.data(), 5);
    RequireOk(index->Execute(DeviceBatch::FindFirst(asked, found.data()), stream.get()));
    RequireOk(index->Execute(DeviceBatch::LowerBound(asked, positions.data()), stream.get()));
    BOOST_TEST((found.ToHost() == std::vector<RowId>{kNoRow, kNoRow, 1, 3, kNoRow}), factory);
    BOOST_TEST((positions.ToHost() == std::vector<Position>{0, 1, 1, 2, 3}), factory);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_enqueued_is_refused) {
  const DeviceArray<uint32_t> keys(std::vector<uint32_t>{1});
  const DeviceArray<RowId> rows(std::vector<RowId>{1});
  const DeviceKeys one(keys.data(), 1);
  for (const char* factory : {"gpu:auto", "gpu:packed", "gpu:packed,directory=tree"}) {
    BOOST_TEST(absl::IsUnimplemented(
        EnqueueDeviceIndex(factory, one, rows.data(), true, nullptr).status()));
  }
  const DeviceKeys bytes("a", keys.data(), 0);
  BOOST_TEST(absl::IsUnimplemented(
      EnqueueDeviceIndex("gpu:fast", bytes, rows.data(), true, nullptr).status()));
  BOOST_TEST(absl::IsInvalidArgument(
      EnqueueDeviceIndex("gpu:none", one, rows.data(), true, nullptr).status()));
  BOOST_TEST(absl::IsInvalidArgument(
      EnqueueDeviceIndex("gpu:pivot,k=3", one, rows.data(), true, nullptr).status()));
  const Stream stream = RequireOk(Stream::Create());
  cudaGraph_t graph = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  BOOST_TEST(absl::IsFailedPrecondition(
      EnqueueDeviceIndex("gpu:fast", one, rows.data(), true, stream.get()).status()));
  BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
}

BOOST_AUTO_TEST_CASE(builds_that_run_out_of_memory_leave_nothing) {
  const Shuffled<uint64_t> entries(OracleRun(OracleCatalogue<uint64_t>(5000).back()), false, 3);
  for (const char* factory : kFactories) {
    BOOST_TEST(FailEveryAllocation([&] {
                 const auto status = entries.Enqueue(factory, false, nullptr).status();
                 BOOST_REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
                 return status;
               }) > 3);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
