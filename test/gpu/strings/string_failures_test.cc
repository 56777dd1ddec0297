// An index of strings on a GPU that fails, or whose stream is captured, and routes to one.
#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "gpu/host/gpu_index.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(string_failures_test, NeedsDevice)
namespace {

constexpr size_t kEntries = 100000;

// Keys of one length or of several, each with `rows_of_key` rows.
struct Data {
  std::vector<std::string> strings;
  std::vector<std::string_view> keys;
  std::vector<RowId> rows;

  explicit Data(size_t rows_of_key = 1, bool one_length = true) {
    for (size_t i = 0; i < kEntries; ++i) {
      const size_t key = i / rows_of_key;
      strings.push_back(absl::StrFormat("key %06d", 2 * key));
      // So long that they have no numbers, which gpu:auto would take.
      if (!one_length && key % 3 == 0) strings.back() += std::string(70, '+');
      rows.push_back(static_cast<RowId>(i));
    }
    keys.assign(strings.begin(), strings.end());
  }
  SortedRun run() const {
    return RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  }
};

// Every second key is present.
std::vector<std::string> SomeQueries(size_t size) {
  std::vector<std::string> queries;
  for (size_t i = 0; i < size; ++i) {
    queries.push_back(absl::StrFormat("key %06d", i * 7 % (2 * kEntries)));
  }
  return queries;
}

BOOST_AUTO_TEST_CASE(a_build_that_runs_out_of_memory_leaves_nothing) {
  for (const Data& data : {Data(), Data(3), Data(1, false)}) {
    const SortedRun run = data.run();
    for (const char* factory : {"gpu:partial_key", "gpu:partial_key,hash"}) {
      BOOST_TEST(FailEveryAllocation([&] { return MakeOrderedIndex(factory, run).status(); }) > 3);
    }
  }
}

BOOST_AUTO_TEST_CASE(queries_that_run_out_of_memory_leave_nothing) {
  const SortedRun run = Data().run();
  HostBatchPolicy policy;
  policy.min_chunk = 1000;
  policy.max_zero_copy = 100;
  policy.max_rows_from_run = 10;
  policy.piece_rows = 100;
  const GpuIndex index(run, RequireOk(MakeDeviceIndex("gpu:partial_key", run)), policy);
  const std::vector<std::string> strings = SomeQueries(5000);
  const std::vector<std::string_view> queries(strings.begin(), strings.end());
  std::vector<Position> positions(queries.size());
  BOOST_TEST(FailEveryAllocation([&] {
               return index.Execute(Batch::LowerBound(queries, absl::MakeSpan(positions)));
             }) > 4);
  FindResult matches;
  BOOST_TEST(FailEveryAllocation([&] { return index.Execute(Batch::Find(queries, &matches)); }) >
             4);
  BOOST_TEST(matches.row_ids.size() == 2500u);
}

BOOST_AUTO_TEST_CASE(batches_meet_a_device_that_fails_at_any_call) {
  const SortedRun run = Data().run();
  HostBatchPolicy policy;
  policy.min_chunk = 1000;
  const GpuIndex index(run, RequireOk(MakeDeviceIndex("gpu:partial_key,hash", run)), policy);
  const std::vector<std::string> strings = SomeQueries(5000);
  const std::vector<std::string_view> queries(strings.begin(), strings.end());
  std::vector<RowId> rows(queries.size());
  int calls = 0;
  for (bool ok = false; !ok; ++calls) {
    BOOST_REQUIRE(calls < 100);
    FailDeviceCallsAfter(calls);
    const absl::Status status = index.Execute(Batch::FindFirst(queries, absl::MakeSpan(rows)));
    FailDeviceCallsAfter(-1);
    ok = status.ok();
    if (!ok) BOOST_TEST(absl::IsUnavailable(status), status);
  }
  BOOST_TEST(calls > 4);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t number = i * 7 % (2 * kEntries);
    BOOST_REQUIRE(rows[i] == (number % 2 == 0 ? number / 2 : kNoRow));
  }
}

// A graph repeats the work of the captured calls.
BOOST_AUTO_TEST_CASE(batches_are_captured) {
  const auto index = RequireOk(MakeDeviceIndex("gpu:partial_key,hash", Data().run()));
  const std::string heap = "key 000000key 000001key 000002key 000003" + std::string(4, ' ');
  const DeviceArray<char> bytes(std::vector<char>(heap.begin(), heap.end()));
  const DeviceArray<uint32_t> offsets(std::vector<uint32_t>{0, 10, 20, 30, 40});
  const DeviceKeys keys(bytes.data(), offsets.data(), 4);
  const DeviceArray<RowId> rows(4);
  const DeviceArray<Position> lower(4), upper(4);
  const Stream stream = RequireOk(Stream::Create());
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  RequireOk(index->Execute(DeviceBatch::FindFirst(keys, rows.data()), stream.get()));
  RequireOk(
      index->Execute(DeviceBatch::EqualRange(keys, lower.data(), upper.data()), stream.get()));
  cudaGraph_t graph = nullptr;
  BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  cudaGraphExec_t launched = nullptr;
  BOOST_REQUIRE(cudaGraphInstantiate(&launched, graph, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    BOOST_REQUIRE(cudaMemset(lower.data(), 0xEE, 4 * sizeof(Position)) == cudaSuccess);
    BOOST_REQUIRE(cudaGraphLaunch(launched, stream.get()) == cudaSuccess);
    BOOST_TEST((rows.ToHost() == std::vector<RowId>{0, kNoRow, 1, kNoRow}));
    BOOST_TEST((lower.ToHost() == std::vector<Position>{0, 1, 1, 2}));
    BOOST_TEST((upper.ToHost() == std::vector<Position>{1, 1, 2, 2}));
  }
  BOOST_TEST(cudaGraphExecDestroy(launched) == cudaSuccess);
  BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
}

BOOST_AUTO_TEST_CASE(a_router_takes_text_to_the_gpu_and_back) {
  const SortedRun run = Data(1, false).run();
  OpenOptions options;
  options.device = SearchDevice::kAuto;
  const ResidentIndexes resident = RequireOk(MakeResidentIndexes(options, run));
  BOOST_TEST(resident.fallback == "");
  IndexRouter router(resident, run, 1, IndexRouterOptions{Calibration::kTrials, 2});
  const std::vector<std::string> strings = SomeQueries(20000);
  const std::vector<std::string_view> queries(strings.begin(), strings.end());
  Explain explain;
  std::vector<RowId> by_gpu(queries.size()), by_cpu(queries.size());
  Batch batch = Batch::FindFirst(queries, absl::MakeSpan(by_gpu));
  batch.options.route = "gpu:partial_key";
  batch.explain = &explain;
  RequireOk(router.Execute(batch));
  BOOST_TEST(explain.route == "gpu:partial_key");
  FailDeviceCallsAfter(0);
  batch.values = absl::MakeSpan(by_cpu);
  RequireOk(router.Execute(batch));
  FailDeviceCallsAfter(-1);
  BOOST_TEST(absl::StartsWith(explain.route, "cpu:partial_key"), explain.route);
  BOOST_TEST((by_gpu == by_cpu));
}

BOOST_AUTO_TEST_CASE(text_beyond_the_budget_stays_on_the_cpu) {
  OpenOptions options;
  options.device = SearchDevice::kAuto;
  options.device_memory_budget = 1 << 20;
  const ResidentIndexes resident = RequireOk(MakeResidentIndexes(options, Data().run()));
  BOOST_TEST(absl::StrContains(resident.fallback, "exceeds the budget"), resident.fallback);
  BOOST_TEST(resident.indexes.size() == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
