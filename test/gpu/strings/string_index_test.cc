#include "gpu/strings/string_index.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/api/gpu_factory.h"
#include "gpu/host/gpu_index.h"
#include "gpu/runtime/device_memory.h"
#include "test/gpu/device_array.h"
#include "test/gpu/device_strings.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(string_index_test, NeedsDevice)
namespace {

constexpr const char* kFactories[] = {"gpu:partial_key", "gpu:partial_key,hash"};

BOOST_AUTO_TEST_CASE(answers_like_the_oracle) {
  for (const char* factory : kFactories) {
    CheckCatalogue<std::string>(
        [&](const SortedRun& run) { return RequireOk(MakeOrderedIndex(factory, run)); }, 30000);
  }
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_in_device_memory) {
  for (const char* factory : kFactories) {
    for (const auto& data : OracleCatalogue<std::string>(3000)) CheckOnDevice(factory, data);
  }
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_every_small_number_of_keys) {
  auto random = TestRandom(5);
  for (size_t size = 0; size < 70; ++size) {
    std::vector<std::string> keys(size);
    for (std::string& key : keys) key = std::to_string(random() % 200);
    const auto data = oracle::FinishStrings(std::to_string(size) + " keys", std::move(keys));
    for (const char* factory : kFactories) CheckOnDevice(factory, data);
  }
}

// Keys of all lengths around those at which reads are split, keys that differ after these, ties,
// and chains of prefixes.
BOOST_AUTO_TEST_CASE(keys_of_all_lengths) {
  auto random = TestRandom(6);
  std::vector<std::string> lengths, long_ones, zeros, chain;
  for (size_t i = 0; i < 4000; ++i) {
    std::string key(random() % 140, 'k');
    for (int j = 0; j < 2 && !key.empty(); ++j)
      key[random() % key.size()] = "\0kz\xff"[random() % 4];
    lengths.push_back(key);
    if (i % 40 == 0) {
      long_ones.push_back(std::string(5000, 'x') + std::to_string(random() % 100) +
                          std::string(random() % 3000, 'y'));
    }
    zeros.push_back(std::to_string(random() % 300) + std::string(random() % 40, '\0'));
    if (i < 1500) chain.emplace_back(i, i % 3 == 0 ? 'a' : 'b');
  }
  for (const char* factory : kFactories) {
    CheckOnDevice(factory, oracle::FinishStrings("all lengths", lengths));
    CheckOnDevice(factory, oracle::FinishStrings("long ones", long_ones));
    CheckOnDevice(factory, oracle::FinishStrings("zeros", zeros));
    CheckOnDevice(factory, oracle::FinishStrings("chains", chain));
  }
}

// No node has bits this far into the key: only comparisons distinguish these keys.
BOOST_AUTO_TEST_CASE(keys_that_differ_behind_16_megabytes) {
  const std::string same(size_t{16} << 20, 'k');
  auto data = oracle::FinishStrings(
      "long ties", {"j", same, same + 'a', same + "ab", same + "b", same + "b", same + "zz", "l"});
  data.queries = {same.substr(1), same,         same + '\0', same + "a",      same + "aa",
                  same + "ab",    same + "ab0", same + "b",  same + "zz\xff", same + "~"};
  for (const char* factory : kFactories) CheckOnDevice(factory, data);
}

// Batches of the host go in chunks of any size.
BOOST_AUTO_TEST_CASE(chunks_of_any_size) {
  const auto data = OracleCatalogue<std::string>(20000).back();
  const SortedRun run = OracleRun(data);
  for (const size_t chunk : {1, 7, 1000, 1 << 20}) {
    HostBatchPolicy policy;
    policy.min_chunk = chunk;
    policy.max_string_chunk = chunk;
    policy.max_zero_copy = chunk == 1000 ? 0 : 1 << 16;
    const GpuIndex index(run, RequireOk(MakeDeviceIndex("gpu:partial_key", run)), policy);
    CheckPointsAgainstOracle(index, data, chunk == 1 ? 300 : SIZE_MAX);
  }
}

// With one long key, queries of its length need large chunks; short queries do not.
BOOST_AUTO_TEST_CASE(chunks_end_where_strings_are_long) {
  const std::string longest(size_t{1} << 20, 'k');
  const std::vector<std::string_view> keys = {"a", "b", "c", longest};
  const std::vector<RowId> row_ids = {1, 2, 3, 4};
  const SortedRun run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
  const auto index = RequireOk(MakeOrderedIndex("gpu:partial_key", run));
  // 100 MB: every tenth query is long, and all queries of one stretch are.
  std::vector<std::string_view> queries(1000);
  std::vector<RowId> expected(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    const bool is_long = i % 10 == 3 || (i >= 500 && i < 540);
    const size_t missing = i % 3;  // bytes at its end
    queries[i] = is_long ? std::string_view(longest).substr(missing) : keys[i % 3];
    expected[i] = !is_long ? row_ids[i % 3] : missing == 0 ? 4 : kNoRow;
  }
  std::vector<RowId> rows(queries.size());
  RequireOk(index->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))));
  BOOST_TEST((rows == expected));
}

// A query that is much longer than any key is not read to its end.
BOOST_AUTO_TEST_CASE(long_queries_cost_no_memory) {
  const std::vector<std::string_view> keys = {"a", "b", "bb"};
  const std::vector<RowId> row_ids = {1, 2, 3};
  const SortedRun run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
  const auto index = RequireOk(MakeOrderedIndex("gpu:auto", run));
  const std::string longest(size_t{100} << 20, 'b');
  const std::vector<std::string_view> queries(1000, longest);
  std::vector<Position> positions(queries.size());
  RequireOk(index->Execute(Batch::LowerBound(queries, absl::MakeSpan(positions))));
  BOOST_TEST((positions == std::vector<Position>(queries.size(), 3)));
}

BOOST_AUTO_TEST_CASE(keys_out_of_order_are_refused) {
  const std::vector<std::string_view> good = {"a", "b", "c", "d"};
  for (size_t swapped = 0; swapped < 3; ++swapped) {
    std::string heap = "abcd";
    std::swap(heap[swapped], heap[swapped + 1]);
    const std::vector<uint32_t> offsets = {0, 1, 2, 3, 4};
    const std::vector<RowId> row_ids = {0, 1, 2, 3};
    const SortedRun run =
        SortedRun::Wrap(BytesColumn(heap.data(), absl::MakeConstSpan(offsets)), row_ids, nullptr);
    for (const char* factory : kFactories) {
      BOOST_TEST(absl::IsDataLoss(MakeOrderedIndex(factory, run).status()));
    }
  }
}

BOOST_AUTO_TEST_CASE(entries_without_rows_are_refused) {
  const std::string heap = "ab";
  const std::vector<uint32_t> offsets = {0, 1, 2};
  const std::vector<RowId> row_ids = {1, kNoRow};
  const SortedRun run =
      SortedRun::Wrap(BytesColumn(heap.data(), absl::MakeConstSpan(offsets)), row_ids, nullptr);
  for (const char* factory : kFactories) {
    BOOST_TEST(absl::IsDataLoss(MakeOrderedIndex(factory, run).status()));
  }
}

BOOST_AUTO_TEST_CASE(memory_is_predicted_from_above) {
  for (const auto& data : OracleCatalogue<std::string>(30000)) {
    const SortedRun run = OracleRun(data);
    for (const char* factory : kFactories) {
      const DeviceBytes predicted =
          RequireOk(PredictDeviceBytes(RequireOk(FactoryString::Parse(factory)), run));
      (void)TakePeakDeviceBytes();
      const size_t before = AllocatedDeviceBytes();
      const auto index = RequireOk(MakeOrderedIndex(factory, run));
      BOOST_TEST(index->memory_bytes() <= predicted.resident, data.name);
      BOOST_TEST(TakePeakDeviceBytes() - before <= predicted.building, data.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(says_what_it_is_and_what_it_does_not_take) {
  const auto data = OracleCatalogue<std::string>(2000).back();
  const SortedRun run = OracleRun(data);
  BOOST_TEST(RequireOk(MakeOrderedIndex("gpu:partial_key,hash", run))->description() ==
             "gpu:partial_key,hash");
  BOOST_TEST(absl::IsInvalidArgument(MakeOrderedIndex("gpu:partial_key,bits=16", run).status()));
  const std::vector<uint32_t> numbers = {1, 2};
  const std::vector<RowId> row_ids = {0, 1};
  const SortedRun of_numbers = RequireOk(SortedRun::FromSorted(numbers, row_ids));
  BOOST_TEST(absl::IsUnimplemented(MakeOrderedIndex("gpu:partial_key", of_numbers).status()));
  const auto index = RequireOk(MakeDeviceIndex("gpu:auto", run));
  const DeviceArray<uint32_t> keys(numbers);
  DeviceArray<RowId> rows(2);
  BOOST_TEST(absl::IsInvalidArgument(
      index->Execute(DeviceBatch::FindFirst(DeviceKeys(keys.data(), 2), rows.data()), nullptr)));
  BOOST_TEST(absl::IsUnimplemented(
      MakeDeviceIndex("gpu:auto", DeviceStrings({"a"}).keys(), rows.data(), nullptr).status()));
}

BOOST_AUTO_TEST_CASE(many_threads_ask_at_once) {
  const auto data = OracleCatalogue<std::string>(30000).back();
  const auto index = RequireOk(MakeOrderedIndex("gpu:partial_key,hash", OracleRun(data)));
  const auto queries = oracle::Views(data.queries);
  std::vector<RowId> expected(queries.size());
  RequireOk(index->Execute(Batch::FindFirst(queries, absl::MakeSpan(expected))));
  RequireOnFourThreads([&] {
    std::vector<RowId> rows(queries.size());
    bool same = true;
    for (int i = 0; i < 10; ++i) {
      same &= index->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))).ok();
      same &= rows == expected;
    }
    return same;
  });
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
