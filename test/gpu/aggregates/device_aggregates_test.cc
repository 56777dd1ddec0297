// Aggregates of ranges on a device, over all sorts of keys and values.
#include "cairn/device/aggregates.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpu/runtime/stream.h"
#include "test/gpu/aggregates/aggregate_check.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_aggregates_test, NeedsDevice)
namespace {

// Aggregates over keys, in any order, and the expected values.
template <typename Key>
void CheckKeys(const std::vector<Key>& keys, size_t queries, bool with_rows) {
  auto random = TestRandom(keys.size());
  const size_t values = keys.size() + (with_rows ? 10 : 0);
  const Columns columns(values);
  std::vector<RowId> rows;
  if (with_rows) {
    for (size_t i = 0; i < keys.size(); ++i) rows.push_back(static_cast<RowId>(random() % values));
  }
  const DeviceArray<Key> device_keys(keys);
  const DeviceArray<RowId> device_rows(rows);
  const DeviceColumns device_columns(columns);
  const std::vector<DeviceColumn> views = device_columns.views();
  const auto aggregates = RequireOk(MakeDeviceAggregates(
      DeviceKeys(device_keys.data(), keys.size()), with_rows ? device_rows.data() : nullptr, views,
      AllAggregates(views.size()), nullptr));
  BOOST_TEST(aggregates->size() == keys.size());
  BOOST_TEST((aggregates->memory_bytes() > 0) == !keys.empty());
  const SortedEntries<Key> entries(keys, rows);
  AggregateQueries<Key> ranges = MakeQueries(keys, queries, keys.size());
  Checker<Key>(*aggregates, entries, ranges).CheckAll(columns);
  for (const auto& [lower, upper] :
       {std::pair(Bound::kExclusive, Bound::kInclusive), std::pair(Bound::kInclusive, Bound::kOpen),
        std::pair(Bound::kOpen, Bound::kExclusive)}) {
    ranges.lower_bound = lower;
    ranges.upper_bound = upper;
    const Checker<Key> checker(*aggregates, entries, ranges);
    checker.CheckCounts();
    checker.CheckColumn(columns.u32, 0);
    checker.CheckColumn(columns.i64, 3);
    checker.CheckColumn(columns.odd, 7);
  }
}

// `size` keys below `space`, distinct if there are enough.
template <typename Key>
std::vector<Key> RandomKeys(size_t size, uint64_t space, uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<Key> keys(size);
  for (Key& key : keys) key = static_cast<Key>(space == 0 ? random() : random() % space);
  return keys;
}
template <typename Key>
std::vector<Key> DistinctOf(std::vector<Key> keys) {
  auto random = TestRandom(1);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::shuffle(keys.begin(), keys.end(), random);
  return keys;
}

// Ever farther apart, so that no bitmap does.
template <typename Key>
std::vector<Key> SkewedKeys(size_t size) {
  auto random = TestRandom(4);
  std::vector<Key> keys(size);
  for (Key& key : keys) key = static_cast<Key>(random()) >> random() % (8 * sizeof(Key));
  return DistinctOf(std::move(keys));
}

template <typename Key>
void CheckSmall() {
  for (const size_t size : {0, 1, 2, 3, 8, 9, 16, 17, 33, 127, 129, 2049}) {
    BOOST_TEST_CONTEXT(size << " entries") {
      CheckKeys(DistinctOf(RandomKeys<Key>(size, 0, size)), 60, size % 2 != 0);
      CheckKeys(RandomKeys<Key>(size, size / 3 + 1, size), 60, size % 2 == 0);
    }
  }
  for (const Key key : {Key{0}, Key{77}, static_cast<Key>(~Key{0})}) {
    CheckKeys(std::vector<Key>(1, key), 50, false);
    CheckKeys(std::vector<Key>(3000, key), 50, true);
  }
  CheckKeys(std::vector<Key>{0, static_cast<Key>(~Key{0})}, 50, false);
}

template <typename Key>
void CheckLarge() {
  constexpr size_t kSize = 20000;
  BOOST_TEST_CONTEXT("uniform") {
    CheckKeys(DistinctOf(RandomKeys<Key>(kSize, 0, 1)), 50, true);
  }
  BOOST_TEST_CONTEXT("dense") {
    std::vector<Key> keys(kSize);
    std::iota(keys.begin(), keys.end(), static_cast<Key>(Key{0} - kSize / 2));
    CheckKeys(DistinctOf(std::move(keys)), 50, false);
  }
  BOOST_TEST_CONTEXT("every key several times") {
    CheckKeys(RandomKeys<Key>(kSize, kSize / 8, 2), 50, true);
  }
  BOOST_TEST_CONTEXT("few keys repeat") {
    CheckKeys(RandomKeys<Key>(kSize, 0x3FFFFFF, 3), 50, false);
  }
  BOOST_TEST_CONTEXT("skewed") {
    CheckKeys(SkewedKeys<Key>(kSize), 50, false);
  }
}

BOOST_AUTO_TEST_CASE(few_entries_of_32_bits) {
  CheckSmall<uint32_t>();
}
BOOST_AUTO_TEST_CASE(few_entries_of_64_bits) {
  CheckSmall<uint64_t>();
}
BOOST_AUTO_TEST_CASE(many_entries_of_32_bits) {
  CheckLarge<uint32_t>();
}
BOOST_AUTO_TEST_CASE(many_entries_of_64_bits) {
  CheckLarge<uint64_t>();
}

BOOST_AUTO_TEST_CASE(values_at_the_ends_of_their_types) {
  Columns columns(3000);
  auto random = TestRandom();
  for (size_t i = 0; i < 3000; ++i) {
    columns.u32[i] = random() % 2 == 0 ? 0 : UINT32_MAX;
    columns.i32[i] = random() % 2 == 0 ? INT32_MIN : INT32_MAX;
    columns.u64[i] = random() % 2 == 0 ? 0 : UINT64_MAX;
    columns.i64[i] = random() % 2 == 0 ? INT64_MIN : INT64_MAX;
    columns.few[i] = INT64_MIN + 5;
    columns.f32[i] = random() % 2 == 0 ? -std::numeric_limits<float>::infinity() : -0.0F;
    columns.f64[i] = random() % 2 == 0 ? 1e308 : -1e308;
    columns.odd[i] = kNaN;
  }
  const auto keys = DistinctOf(RandomKeys<uint32_t>(3000, 0, 5));
  const DeviceArray<uint32_t> device_keys(keys);
  const DeviceColumns device_columns(columns);
  const auto aggregates =
      RequireOk(MakeDeviceAggregates(DeviceKeys(device_keys.data(), keys.size()), nullptr,
                                     device_columns.views(), AllAggregates(8), nullptr));
  const SortedEntries<uint32_t> entries(keys, {});
  const auto queries = MakeQueries(keys, 300, 6);
  const Checker<uint32_t> checker(*aggregates, entries, queries);
  checker.CheckCounts();
  checker.CheckColumn(columns.u32, 0);
  checker.CheckColumn(columns.i32, 1);
  checker.CheckColumn(columns.u64, 2);
  checker.CheckColumn(columns.i64, 3);
  checker.CheckColumn(columns.few, 4);
  checker.CheckColumn(columns.f32, 5);
  checker.CheckColumn(columns.odd, 7);
}

BOOST_AUTO_TEST_CASE(entries_of_a_run) {
  const auto unsorted = DistinctOf(RandomKeys<uint64_t>(20000, 0, 7));
  const Columns columns(unsorted.size());
  std::vector<uint64_t> keys = unsorted;
  std::sort(keys.begin(), keys.end());
  std::vector<RowId> rows(keys.size());
  std::iota(rows.rbegin(), rows.rend(), RowId{0});
  const auto run = RequireOk(SortedRun::FromSorted(keys, rows));
  const DeviceColumns device_columns(columns);
  const auto aggregates =
      RequireOk(MakeDeviceAggregates(run, device_columns.views(), AllAggregates(8)));
  const SortedEntries<uint64_t> entries(keys, rows);
  const auto queries = MakeQueries(keys, 200, 8);
  Checker<uint64_t>(*aggregates, entries, queries).CheckAll(columns);
}

BOOST_AUTO_TEST_CASE(counts_alone_take_no_columns) {
  const auto keys = RandomKeys<uint32_t>(30000, 20000, 9);
  const DeviceArray<uint32_t> device_keys(keys);
  const auto aggregates = RequireOk(
      MakeDeviceAggregates(DeviceKeys(device_keys.data(), keys.size()), nullptr, {}, {}, nullptr));
  const SortedEntries<uint32_t> entries(keys, {});
  const auto queries = MakeQueries(keys, 500, 10);
  Checker<uint32_t>(*aggregates, entries, queries).CheckCounts();
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said) {
  const std::vector<uint32_t> keys = {5, 3, 9};
  const DeviceArray<uint32_t> device_keys(keys), values(keys);
  const DeviceArray<RowId> rows(std::vector<RowId>{0, 2, 3});
  const DeviceKeys view(device_keys.data(), 3);
  const std::vector<DeviceColumn> columns = {{values.data(), 3}};
  const std::vector<DeviceAggregate> sum = {DeviceAggregate::Sum(0)};
  const auto make = [&](DeviceKeys k, const RowId* r, std::vector<DeviceAggregate> a) {
    return MakeDeviceAggregates(k, r, columns, a, nullptr).status();
  };
  BOOST_TEST(absl::IsInvalidArgument(make(view, rows.data(), sum)));  // row 3 of 3
  BOOST_TEST(absl::IsInvalidArgument(make(view, nullptr, {DeviceAggregate::Min(1)})));
  BOOST_TEST(absl::IsUnimplemented(make(DeviceKeys("", rows.data(), 0), nullptr, sum)));

  const auto made = RequireOk(MakeDeviceAggregates(view, nullptr, columns, sum, nullptr));
  const DeviceRanges good = {view, view};
  BOOST_TEST(absl::IsInvalidArgument(made->Execute(good, DeviceAggregate::Max(0), {}, nullptr)));
  BOOST_TEST(absl::IsInvalidArgument(made->Execute(good, DeviceAggregate::Sum(1), {}, nullptr)));
  DeviceRanges bad = good;
  bad.upper_bound = Bound::kPrefix;
  BOOST_TEST(absl::IsInvalidArgument(made->Execute(bad, sum[0], {}, nullptr)));
  bad = {view, DeviceKeys(device_keys.data(), 2)};
  BOOST_TEST(absl::IsInvalidArgument(made->Execute(bad, sum[0], {}, nullptr)));
  const DeviceArray<uint64_t> wide(3);
  bad = {DeviceKeys(wide.data(), 3), DeviceKeys(wide.data(), 3)};
  BOOST_TEST(absl::IsInvalidArgument(made->Execute(bad, sum[0], {}, nullptr)));
  RequireOk(made->Execute({DeviceKeys(), DeviceKeys()}, sum[0], {}, nullptr));
  RequireOk(made->Execute(good, sum[0], {}, nullptr));  // no result is requested
  BOOST_TEST((cudaDeviceSynchronize() == cudaSuccess));
}

// A large batch uses separate blocks, which keep the directory's top. Its results must be those of
// the same ranges in pieces.
template <typename Key>
void CheckLargeBatch(const std::vector<Key>& keys) {
  constexpr size_t kRanges = (size_t{1} << 18) + 77, kPiece = size_t{1} << 16;
  const DeviceArray<Key> device_keys(keys);
  const DeviceColumns columns{Columns(keys.size())};
  const auto aggregates =
      RequireOk(MakeDeviceAggregates(DeviceKeys(device_keys.data(), keys.size()), nullptr,
                                     columns.views(), AllAggregates(8), nullptr));
  const auto queries = MakeQueries(keys, kRanges, 12);
  const DeviceArray<Key> lower(queries.lower), upper(queries.upper);
  const DeviceArray<uint64_t> counts(kRanges), again(kRanges);
  const DeviceArray<uint64_t> values(kRanges), pieces(kRanges);
  for (const auto& aggregate : {DeviceAggregate::Sum(0), DeviceAggregate::Sum(3),
                                DeviceAggregate::Sum(6), DeviceAggregate::Min(2)}) {
    const auto ask = [&](size_t first, size_t size, uint64_t* to_counts, uint64_t* to_values) {
      RequireOk(aggregates->Execute(
          {DeviceKeys(lower.data() + first, size), DeviceKeys(upper.data() + first, size)},
          aggregate, {to_counts, to_values, nullptr}, nullptr));
    };
    ask(0, kRanges, counts.data(), values.data());
    for (size_t first = 0; first < kRanges; first += kPiece) {
      ask(first, std::min(kPiece, kRanges - first), again.data() + first, pieces.data() + first);
    }
    BOOST_TEST((counts.ToHost() == again.ToHost()));
    BOOST_TEST((values.ToHost() == pieces.ToHost()));
  }
}

BOOST_AUTO_TEST_CASE(large_batches) {
  CheckLargeBatch(DistinctOf(RandomKeys<uint32_t>(20000, 0, 13)));
  CheckLargeBatch(RandomKeys<uint64_t>(20000, 5000, 14));
  CheckLargeBatch(SkewedKeys<uint32_t>(20000));
  CheckLargeBatch(SkewedKeys<uint64_t>(20000));  // under a tree
}

// Aggregates may be destroyed while their work is enqueued, and cannot be built on a stream that is
// being captured.
BOOST_AUTO_TEST_CASE(streams_that_wait_and_streams_that_are_captured) {
  std::vector<uint32_t> keys(300000);
  std::iota(keys.begin(), keys.end(), 0U);
  const DeviceArray<uint32_t> device_keys(keys), lower(std::vector<uint32_t>{0, 100, 7});
  const DeviceArray<uint32_t> upper(std::vector<uint32_t>{300000, 200, 7});
  const DeviceArray<uint64_t> sums(3), counts(3);
  const DeviceKeys view(device_keys.data(), keys.size());
  const std::vector<DeviceColumn> columns = {{device_keys.data(), keys.size()}};
  const std::vector<DeviceAggregate> sum = {DeviceAggregate::Sum(0)};
  const DeviceRanges ranges = {DeviceKeys(lower.data(), 3), DeviceKeys(upper.data(), 3)};
  const Stream stream = RequireOk(Stream::Create());
  auto made = RequireOk(MakeDeviceAggregates(view, nullptr, columns, sum, stream.get()));
  cudaGraph_t graph = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  RequireOk(made->Execute(ranges, sum[0], {counts.data(), sums.data(), nullptr}, stream.get()));
  BOOST_TEST(absl::IsFailedPrecondition(
      MakeDeviceAggregates(view, nullptr, columns, sum, stream.get()).status()));
  BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
  RequireOk(made->Execute(ranges, sum[0], {counts.data(), sums.data(), nullptr}, stream.get()));
  made = nullptr;
  const std::vector<uint64_t> expected = {uint64_t{300000} * 299999 / 2, 14950, 0};
  BOOST_TEST(sums.ToHost() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_build_that_runs_out_of_memory_leaves_nothing) {
  for (const uint64_t space : {uint64_t{0}, uint64_t{1000}}) {
    const auto keys = RandomKeys<uint32_t>(20000, space, 11);
    const DeviceArray<uint32_t> device_keys(keys);
    const DeviceColumns columns{Columns(keys.size())};
    const int needed = FailEveryAllocation([&] {
      return MakeDeviceAggregates(DeviceKeys(device_keys.data(), keys.size()), nullptr,
                                  columns.views(), AllAggregates(8), nullptr)
          .status();
    });
    BOOST_TEST(needed > 50);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
