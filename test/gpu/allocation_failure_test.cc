#include <boost/test/unit_test.hpp>
#include <functional>
#include <vector>

#include "cairn/ordered_index.h"
#include "gpu/device_memory.h"
#include "gpu/gpu_index.h"
#include "test/gpu/needs_device.h"

namespace cairn::gpu {
namespace {

constexpr size_t kEntries = 100000;

SortedRun Run() {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(7 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(keys, rows);
}

// Lets the first, the second, ... allocation of `work` fail until it needs no more of them. Returns
// how many it needs.
int FailEveryAllocation(const std::function<absl::Status()>& work) {
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0;; ++i) {
    FailDeviceAllocationsAfter(i);
    const absl::Status status = work();
    FailDeviceAllocationsAfter(-1);
    BOOST_TEST(AllocatedDeviceBytes() == before, "after failure " << i << ": " << status);
    if (status.ok()) return i;
    BOOST_TEST(absl::IsResourceExhausted(status), "at failure " << i << ": " << status);
    BOOST_REQUIRE(i < 1000);
  }
}

BOOST_FIXTURE_TEST_SUITE(allocation_failure_test, NeedsDevice)

BOOST_AUTO_TEST_CASE(a_build_that_runs_out_of_memory_leaves_nothing) {
  const SortedRun run = Run();
  for (const char* factory : {"gpu:sorted_array", "gpu:sorted_array,aos"}) {
    const int needed = FailEveryAllocation([&] { return MakeOrderedIndex(factory, run).status(); });
    BOOST_TEST(needed > 1, factory);
  }
}

BOOST_AUTO_TEST_CASE(a_query_that_runs_out_of_memory_leaves_nothing) {
  auto device_index = MakeDeviceIndex("gpu:sorted_array", Run());
  BOOST_REQUIRE_MESSAGE(device_index.ok(), device_index.status());
  HostBatchPolicy policy;
  policy.most_zero_copy = 100;
  policy.chunks = 8;
  policy.least_chunk = 100;
  policy.most_rows_from_run = 10;
  policy.piece_rows = 100;
  const GpuIndex index(Run(), *std::move(device_index), policy);
  std::vector<uint32_t> keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i * 131 % 700000);
  const KeyBatch batch = KeyBatch::U32(keys);

  std::vector<Position> positions(keys.size());
  BOOST_TEST(
      FailEveryAllocation([&] { return index.LowerBound(batch, absl::MakeSpan(positions)); }) == 4);
  std::vector<uint64_t> counts(keys.size());
  BOOST_TEST(FailEveryAllocation([&] {
               return index.Count(RangeBatch::Equal(batch), absl::MakeSpan(counts));
             }) >= 4);
  Matches matches;
  BOOST_TEST(FailEveryAllocation([&] { return index.Find(batch, &matches); }) > 4);
  BOOST_TEST(matches.size() == keys.size());
  // The index answers as before.
  BOOST_REQUIRE(index.LowerBound(batch, absl::MakeSpan(positions)).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    BOOST_REQUIRE(positions[i] == (keys[i] + 6) / 7);
    BOOST_REQUIRE(matches[i].size() == (keys[i] % 7 == 0 ? 1u : 0u));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
