#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/device/group.h"
#include "test/gpu/device_array.h"
#include "test/gpu/group/group_check.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(group_input_test, NeedsDevice)
namespace {

BOOST_AUTO_TEST_CASE(bad_input_is_refused) {
  const std::vector<uint32_t> keys = {1, 2, 3};
  const std::vector<uint64_t> keys64 = {1, 2, 3};
  const std::vector<RowId> rows = {0, 1, 2};
  const SortedRun run = RequireOk(SortedRun::FromSorted(keys, rows));
  const SortedRun run64 = RequireOk(SortedRun::FromSorted(keys64, rows));
  const auto bad = [](const auto& made, std::string_view words) {
    BOOST_TEST(absl::IsInvalidArgument(made.status()), made.status());
    BOOST_TEST(made.status().ToString().find(words) != std::string::npos, made.status());
  };
  bad(DeviceGroup::Replicate("gpu:auto", run, {}), "got 0 members, expected 1 to 64");
  bad(DeviceGroup::Shard("gpu:auto", run, GroupDevices(65)), "65 members");
  bad(DeviceGroup::Shard("cpu:auto", run, GroupDevices(2)), "gpu:");
  bad(DeviceGroup::OfShards("gpu:auto", std::vector<SortedRun>{run, run}, GroupDevices(2)),
      "shard 1 begins at key 1, before key 3");
  bad(DeviceGroup::OfShards("gpu:auto", std::vector<SortedRun>{run, run64}, GroupDevices(2)),
      "shard 0 has u32 keys, shard 1 u64");
  bad(DeviceGroup::OfShards("gpu:auto", std::vector<SortedRun>{run}, GroupDevices(2)),
      "1 shards, but 2 devices");
  DeviceGroupOptions large_chunk;
  large_chunk.chunk_queries = (size_t{1} << 30) + 1;
  bad(DeviceGroup::Replicate("gpu:auto", run, GroupDevices(1), large_chunk),
      "chunk_queries: got 1073741825");
  BOOST_TEST(absl::IsUnavailable(
      DeviceGroup::Replicate("gpu:auto", run, std::vector<int>{1000}).status()));

  const auto group = RequireOk(DeviceGroup::Shard("gpu:auto", run, GroupDevices(2)));
  BOOST_TEST(group->description().find("sharded 2 x gpu:packed") == 0u, group->description());
  const DeviceArray<uint64_t> wrong_kind(keys64), values(3);
  const DeviceArray<uint32_t> right_kind(keys);
  BOOST_TEST(absl::IsInvalidArgument(group->Execute(
      WideDeviceBatch::LowerBound(DeviceKeys(wrong_kind.data(), 3), values.data()), nullptr)));
  DeviceRanges uneven{DeviceKeys(right_kind.data(), 3), DeviceKeys(right_kind.data(), 2)};
  BOOST_TEST(absl::IsInvalidArgument(
      group->Execute(WideDeviceBatch::Count(uneven, values.data()), nullptr)));
  DeviceRanges prefix{DeviceKeys(right_kind.data(), 3), DeviceKeys(right_kind.data(), 3),
                      Bound::kInclusive, Bound::kPrefix};
  BOOST_TEST(absl::IsInvalidArgument(
      group->Execute(WideDeviceBatch::Count(prefix, values.data()), nullptr)));
  BOOST_TEST(absl::IsUnimplemented(
      group->Execute(WideDeviceBatch{Operation::kScan, {}, uneven}, nullptr)));
  std::vector<RowId> found(3);
  BOOST_TEST(
      absl::IsInvalidArgument(group->Execute(Batch::FindFirst(keys64, absl::MakeSpan(found)))));
  // Empty batches, of any kind.
  RequireOk(group->Execute(WideDeviceBatch::LowerBound({}, nullptr), nullptr));
  RequireOk(group->Execute(WideDeviceBatch::Count({}, nullptr), nullptr));
  RequireOk(group->Execute(Batch::FindFirst({}, absl::Span<RowId>())));
  FindResult matches;
  RequireOk(group->Execute(Batch::Find({}, &matches)));
  BOOST_TEST(matches.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_captured_is_refused) {
  const std::vector<uint32_t> keys = {1, 2, 3};
  const std::vector<RowId> rows = {0, 1, 2};
  const auto group = RequireOk(DeviceGroup::Shard(
      "gpu:auto", RequireOk(SortedRun::FromSorted(keys, rows)), GroupDevices(2)));
  const DeviceArray<uint32_t> memory(keys);
  const DeviceArray<uint64_t> values(3);
  cudaStream_t stream = nullptr;
  BOOST_REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  BOOST_REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  const absl::Status refused = group->Execute(
      WideDeviceBatch::LowerBound(DeviceKeys(memory.data(), 3), values.data()), stream);
  BOOST_TEST(absl::IsFailedPrecondition(refused), refused);
  cudaGraph_t graph = nullptr;
  BOOST_TEST(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  (void)cudaGraphDestroy(graph);
  (void)cudaStreamDestroy(stream);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
