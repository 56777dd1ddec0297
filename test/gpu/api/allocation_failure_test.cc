#include <boost/test/unit_test.hpp>
#include <vector>

#include "cairn/ordered_index.h"
#include "gpu/host/gpu_index.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(allocation_failure_test, NeedsDevice)
namespace {

constexpr size_t kEntries = 100000;

constexpr const char* kFactories[] = {"gpu:packed",
                                      "gpu:packed,directory=bitmap",
                                      "gpu:packed,directory=tree",
                                      "gpu:packed,rows",
                                      "gpu:btree",
                                      "gpu:fast",
                                      "gpu:pivot",
                                      "gpu:eytzinger",
                                      "gpu:sorted_array",
                                      "gpu:sorted_array,aos"};

// Multiples of seven, each with `rows_of_key` rows.
SortedRun Run(size_t rows_of_key = 1) {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(7 * (i / rows_of_key));
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(keys, rows);
}

BOOST_AUTO_TEST_CASE(a_build_that_runs_out_of_memory_leaves_nothing) {
  for (const SortedRun& run : {Run(), Run(3)}) {
    for (const char* factory : kFactories) {
      BOOST_TEST_CONTEXT(factory) {
        const int needed =
            FailEveryAllocation([&] { return MakeOrderedIndex(factory, run).status(); });
        BOOST_TEST(needed > 1);
      }
    }
  }
}

void CheckQueriesThatRunOutOfMemory(const char* factory) {
  auto device_index = RequireOk(MakeDeviceIndex(factory, Run()));
  HostBatchPolicy policy;
  policy.max_zero_copy = 100;
  policy.chunks = 8;
  policy.min_chunk = 100;
  policy.max_rows_from_run = 10;
  policy.piece_rows = 100;
  const GpuIndex index(Run(), std::move(device_index), policy);
  std::vector<uint32_t> keys(5000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i * 131 % 700000);
  const KeyBatch batch(keys);

  std::vector<Position> positions(keys.size());
  BOOST_TEST(FailEveryAllocation([&] {
               return index.Execute(Batch::LowerBound(batch, absl::MakeSpan(positions)));
             }) == 4);
  std::vector<uint64_t> counts(keys.size());
  BOOST_TEST(FailEveryAllocation([&] {
               return index.Execute(Batch::Count(RangeBatch::Equal(batch), absl::MakeSpan(counts)));
             }) >= 4);
  FindResult matches;
  BOOST_TEST(FailEveryAllocation([&] { return index.Execute(Batch::Find(batch, &matches)); }) > 4);
  BOOST_TEST(matches.size() == keys.size());
  // The index answers as before.
  RequireOk(index.Execute(Batch::LowerBound(batch, absl::MakeSpan(positions))));
  size_t wrong = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    wrong += positions[i] != (keys[i] + 6) / 7;
    wrong += counts[i] != (keys[i] % 7 == 0 ? 1 : 0);
    wrong += matches[i].size() != (keys[i] % 7 == 0 ? 1 : 0);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(a_query_that_runs_out_of_memory_leaves_nothing) {
  for (const char* factory : kFactories) {
    BOOST_TEST_CONTEXT(factory) {
      CheckQueriesThatRunOutOfMemory(factory);
    }
  }
}

// Searching packed leaves takes a counter for each chunk that is large.
BOOST_AUTO_TEST_CASE(a_large_chunk_that_runs_out_of_memory_leaves_nothing) {
  for (const char* factory : {"gpu:packed,directory=bitmap", "gpu:packed,directory=tree"}) {
    auto device_index = RequireOk(MakeDeviceIndex(factory, Run()));
    HostBatchPolicy policy;
    policy.min_chunk = size_t{1} << 20;
    const GpuIndex index(Run(), std::move(device_index), policy);
    std::vector<uint32_t> keys(size_t{1} << 22);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i * 131 % 700000);
    std::vector<Position> positions(keys.size());
    const int needed = FailEveryAllocation(
        [&] { return index.Execute(Batch::LowerBound(keys, absl::MakeSpan(positions))); });
    BOOST_TEST(needed == 8, factory << " needs " << needed);
    size_t wrong = 0;
    for (size_t i = 0; i < keys.size(); ++i) wrong += positions[i] != (keys[i] + 6) / 7;
    BOOST_TEST(wrong == 0u, factory);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
