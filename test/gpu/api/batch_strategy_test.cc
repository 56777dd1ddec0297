#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(batch_strategy_test, NeedsDevice)
namespace {

template <typename Key>
DeviceKeys KeysOf(const DeviceArray<Key>& keys) {
  return DeviceKeys(keys.data(), keys.size());
}

// An index over `keys`, each row id three times its entry's position.
template <typename Key>
std::unique_ptr<DeviceIndex> MakeIndex(const std::vector<Key>& keys) {
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(3 * i);
  return RequireOk(MakeDeviceIndex("gpu:sorted_array", *SortedRun::FromSorted(keys, rows)));
}

template <typename Key>
std::vector<Key> SortedKeys(size_t size, uint64_t salt) {
  auto random = TestRandom(salt);
  std::vector<Key> keys(size);
  for (Key& key : keys) key = static_cast<Key>(random());
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Hits, misses, and the least and greatest keys.
template <typename Key>
std::vector<Key> Queries(const std::vector<Key>& keys, size_t size, uint64_t salt) {
  auto random = TestRandom(salt);
  std::vector<Key> queries(size);
  for (Key& query : queries) {
    query = random() % 2 == 0 || keys.empty() ? static_cast<Key>(random())
                                              : keys[random() % keys.size()];
  }
  if (size > 2) queries[0] = 0, queries[2] = static_cast<Key>(~Key{0});
  return queries;
}

template <typename Key>
void CheckStrategy(const std::vector<Key>& keys, const std::vector<Key>& queries,
                   const DeviceStrategyOptions& options) {
  const std::unique_ptr<DeviceIndex> index = MakeIndex(keys);
  const DeviceArray<Key> batch(queries);
  const size_t size = queries.size();
  const bool by_key = options.order == ResultOrder::kKey;
  const size_t allocated = AllocatedDeviceBytes();
  const DeviceArray<Position> positions(size), upper(size), begin(size), end(size);
  const DeviceArray<RowId> rows(size);
  const DeviceArray<bool> found(size);
  const DeviceArray<uint32_t> position_of(size), row_of(size);
  const DeviceKeys asked = KeysOf(batch);
  const auto ask = [&](const DeviceBatch& one, const DeviceArray<uint32_t>& numbers) {
    RequireOk(Execute(*index, one, options, by_key ? numbers.data() : nullptr, nullptr));
  };
  ask(DeviceBatch::LowerBound(asked, positions.data()), position_of);
  ask(DeviceBatch::UpperBound(asked, upper.data()), position_of);
  ask(DeviceBatch::EqualRange(asked, begin.data(), end.data()), position_of);
  ask(DeviceBatch::Contains(asked, found.data()), position_of);
  ask(DeviceBatch::FindFirst(asked, rows.data()), row_of);
  BOOST_TEST(AllocatedDeviceBytes() == allocated);

  std::vector<uint32_t> query_of(size);
  std::iota(query_of.begin(), query_of.end(), 0);
  if (by_key) {
    query_of = position_of.ToHost();
    BOOST_TEST(query_of == row_of.ToHost());
    const int shift = options.strategy == Strategy::kSortBased
                          ? 0
                          : static_cast<int>(8 * sizeof(Key)) - options.part_bits;
    for (size_t i = 1; i < size; ++i) {
      BOOST_REQUIRE(query_of[i] < size);
      BOOST_REQUIRE((queries[query_of[i - 1]] >> shift) <= (queries[query_of[i]] >> shift));
    }
    std::vector<uint32_t> once = query_of;
    std::sort(once.begin(), once.end());
    for (size_t i = 0; i < size; ++i) BOOST_REQUIRE(once[i] == i);
  }
  const std::vector<Position> lower_found = positions.ToHost(), upper_found = upper.ToHost();
  const std::vector<Position> begin_found = begin.ToHost(), end_found = end.ToHost();
  const std::vector<RowId> found_rows = rows.ToHost();
  std::vector<uint8_t> is_there(size);
  BOOST_REQUIRE(cudaMemcpy(is_there.data(), found.data(), size, cudaMemcpyDeviceToHost) ==
                cudaSuccess);
  size_t wrong = 0;
  for (size_t i = 0; i < size; ++i) {
    const Key query = queries[query_of[i]];
    const size_t lower = std::lower_bound(keys.begin(), keys.end(), query) - keys.begin();
    const size_t behind = std::upper_bound(keys.begin(), keys.end(), query) - keys.begin();
    const bool there = lower < behind;
    wrong += lower_found[i] != lower || upper_found[i] != behind;
    wrong += begin_found[i] != lower || end_found[i] != behind;
    wrong += (is_there[i] != 0) != there;
    wrong += found_rows[i] != (there ? static_cast<RowId>(3 * lower) : kNoRow);
  }
  BOOST_TEST(wrong == 0u, wrong << " wrong answers of " << size);
}

template <typename Key>
void CheckStrategies(size_t entries, size_t size) {
  const std::vector<Key> keys = SortedKeys<Key>(entries, entries);
  const std::vector<Key> queries = Queries(keys, size, size);
  CheckStrategy(keys, queries, {});
  for (ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
    CheckStrategy(keys, queries, {Strategy::kSortBased, order});
    for (int bits : {1, 8, 11, 16}) {
      CheckStrategy(keys, queries, {Strategy::kBuffered, order, bits});
    }
  }
}

BOOST_AUTO_TEST_CASE(every_strategy_and_order_gives_the_right_answers) {
  for (size_t size : {0, 1, 2, 255, 256, 257, 100000}) {
    CheckStrategies<uint32_t>(30000, size);
    CheckStrategies<uint64_t>(30000, size);
  }
  CheckStrategies<uint32_t>(0, 1000);
}

BOOST_AUTO_TEST_CASE(options_that_do_not_go_together_are_refused) {
  const std::unique_ptr<DeviceIndex> index = MakeIndex(SortedKeys<uint32_t>(10, 1));
  const DeviceArray<uint32_t> keys(std::vector<uint32_t>{1, 2}), out(2), numbers(2);
  const auto refused = [&](const DeviceStrategyOptions& options, uint32_t* query_of) {
    return absl::IsInvalidArgument(Execute(*index, DeviceBatch::FindFirst(KeysOf(keys), out.data()),
                                           options, query_of, nullptr));
  };
  BOOST_TEST(refused({Strategy::kUnbuffered, ResultOrder::kKey}, numbers.data()));
  BOOST_TEST(refused({Strategy::kSortBased, ResultOrder::kKey}, nullptr));
  BOOST_TEST(refused({Strategy::kSortBased, ResultOrder::kCaller}, numbers.data()));
  BOOST_TEST(refused({Strategy::kBuffered, ResultOrder::kCaller, 0}, nullptr));
  BOOST_TEST(refused({Strategy::kBuffered, ResultOrder::kCaller, 17}, nullptr));
  const DeviceArray<uint64_t> other(std::vector<uint64_t>{1, 2});
  BOOST_TEST(
      absl::IsInvalidArgument(Execute(*index, DeviceBatch::FindFirst(KeysOf(other), out.data()),
                                      {Strategy::kSortBased}, nullptr, nullptr)));
  // Ranges are answered as they are, in the caller's order only; rows take two steps.
  DeviceRanges ranges;
  ranges.lower = ranges.upper = KeysOf(keys);
  const DeviceArray<uint64_t> counts(2);
  const DeviceBatch count = DeviceBatch::Count(ranges, counts.data());
  BOOST_TEST(Execute(*index, count, {Strategy::kSortBased}, nullptr, nullptr).ok());
  BOOST_TEST((counts.ToHost() == std::vector<uint64_t>{0, 0}));
  BOOST_TEST(absl::IsInvalidArgument(
      Execute(*index, count, {Strategy::kSortBased, ResultOrder::kKey}, numbers.data(), nullptr)));
  for (const Operation operation : {Operation::kFind, Operation::kScan}) {
    DeviceBatch rows{operation, KeysOf(keys), ranges};
    BOOST_TEST(absl::IsInvalidArgument(index->Execute(rows, nullptr)));
    BOOST_TEST(
        absl::IsInvalidArgument(Execute(*index, rows, {Strategy::kSortBased}, nullptr, nullptr)));
  }
}

BOOST_AUTO_TEST_CASE(a_strategy_that_runs_out_of_memory_leaves_nothing) {
  const std::unique_ptr<DeviceIndex> index = MakeIndex(SortedKeys<uint64_t>(1000, 1));
  const DeviceArray<uint64_t> keys(SortedKeys<uint64_t>(5000, 2));
  const DeviceArray<RowId> rows(keys.size());
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0;; ++i) {
    FailDeviceAllocationsAfter(i);
    const absl::Status s = Execute(*index, DeviceBatch::FindFirst(KeysOf(keys), rows.data()),
                                   {Strategy::kSortBased}, nullptr, nullptr);
    FailDeviceAllocationsAfter(-1);
    BOOST_TEST(AllocatedDeviceBytes() == before);
    if (s.ok()) {
      BOOST_TEST(i > 2);
      break;
    }
    BOOST_TEST(absl::IsResourceExhausted(s), s);
    BOOST_REQUIRE(i < 100);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
