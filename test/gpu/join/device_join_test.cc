// Compares joins on a device with two nested loops.
#include "cairn/device/join.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_join_test, NeedsDevice)
namespace {

constexpr RowId kUntouched = 0xABABABAB;

template <typename Key>
struct Side {
  std::vector<Key> keys;
  std::vector<RowId> rows;  // none: the numbers of the entries

  Side(std::vector<Key> unsorted, bool with_rows) : keys(std::move(unsorted)) {
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; with_rows && i < keys.size(); ++i) {
      rows.push_back(static_cast<RowId>(i * 2654435761u));
    }
  }
  RowId RowOf(size_t i) const { return rows.empty() ? static_cast<RowId>(i) : rows[i]; }
};

// A side in device memory, `skipped` elements after an aligned address.
template <typename Key>
class SideOnDevice {
 public:
  SideOnDevice(const Side<Key>& side, size_t skipped)
      : skipped_(skipped),
        size_(side.keys.size()),
        keys_(Behind(side.keys, skipped)),
        rows_(Behind(side.rows, skipped)) {}
  DeviceEntries view() const {
    return {DeviceKeys(keys_.data() + skipped_, size_),
            rows_.size() > skipped_ ? rows_.data() + skipped_ : nullptr};
  }

 private:
  template <typename T>
  static std::vector<T> Behind(const std::vector<T>& values, size_t skipped) {
    std::vector<T> all(skipped);
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  size_t skipped_, size_;
  DeviceArray<Key> keys_;
  DeviceArray<RowId> rows_;
};

using Pairs = std::vector<std::pair<RowId, RowId>>;

// In the order of keys, then of the entries of the longer side.
template <typename Key>
Pairs Expect(const Side<Key>& left, const Side<Key>& right) {
  Pairs pairs;
  if (right.keys.size() > left.keys.size()) {
    pairs = Expect(right, left);
    for (auto& [a, b] : pairs) std::swap(a, b);
    return pairs;
  }
  size_t first = 0;
  for (size_t i = 0; i < left.keys.size(); ++i) {
    while (first < right.keys.size() && right.keys[first] < left.keys[i]) ++first;
    for (size_t j = first; j < right.keys.size() && right.keys[j] == left.keys[i]; ++j) {
      pairs.emplace_back(left.RowOf(i), right.RowOf(j));
    }
  }
  return pairs;
}

template <typename Key>
void CheckJoin(const Side<Key>& left, const Side<Key>& right, size_t skipped = 0) {
  const Pairs expected = Expect(left, right);
  const SideOnDevice<Key> a(left, skipped), b(right, skipped);
  const Stream stream = RequireOk(Stream::Create());
  const std::string name = std::to_string(left.keys.size()) + " with " +
                           std::to_string(right.keys.size()) + " entries, " +
                           std::to_string(expected.size()) + " pairs";
  const DeviceArray<uint64_t> total(std::vector<uint64_t>(1, 77));
  RequireOk(CountDeviceJoin(a.view(), b.view(), total.data(), stream.get()));
  BOOST_TEST_REQUIRE(total.ToHost()[0] == expected.size(), name);
  const uint64_t all = expected.size();
  for (const uint64_t capacity : {all, all + 10, all / 2, uint64_t{1}, uint64_t{0}}) {
    const DeviceArray<RowId> left_rows(std::vector<RowId>(all + 10, kUntouched));
    const DeviceArray<RowId> right_rows(std::vector<RowId>(all + 10, kUntouched));
    const DeviceArray<uint64_t> again(std::vector<uint64_t>(1, 77));
    RequireOk(JoinDevice(a.view(), b.view(),
                         {left_rows.data(), right_rows.data(), capacity, again.data()},
                         stream.get()));
    BOOST_TEST_REQUIRE(again.ToHost()[0] == all, name);
    const auto found_left = left_rows.ToHost(), found_right = right_rows.ToHost();
    // One check for all, as there are millions.
    size_t i = 0;
    for (; i < all + 10; ++i) {
      const auto pair = i < all && i < capacity ? expected[i] : std::pair(kUntouched, kUntouched);
      if (std::pair(found_left[i], found_right[i]) != pair) break;
    }
    BOOST_TEST_REQUIRE(i == all + 10, name << ", room for " << capacity << ", at pair " << i);
  }
}

template <typename Key>
std::vector<Key> RandomKeys(size_t size, uint64_t space, uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<Key> keys(size);
  for (Key& key : keys) key = static_cast<Key>(space == 0 ? random() : random() % space);
  return keys;
}
template <typename Key>
std::vector<Key> Multiples(size_t size, Key factor, Key first) {
  std::vector<Key> keys(size);
  for (size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(first + i * factor);
  return keys;
}

template <typename Key>
void CheckSizes() {
  for (const size_t a : {0, 1, 2, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025, 4097}) {
    for (const size_t b : {0, 1, 33, 512, 1025, 3000}) {
      CheckJoin<Key>({RandomKeys<Key>(a, 2 * b + 1, a), a % 2 == 0},
                     {RandomKeys<Key>(b, 2 * b + 1, b + 7), a % 3 != 0}, (a + b) % 4);
    }
  }
}

template <typename Key>
void CheckShapes() {
  constexpr size_t kSize = 20000;
  const Side<Key> some(Multiples<Key>(kSize, 2, 1000), true);
  CheckJoin<Key>(some, some);                                        // all match
  CheckJoin<Key>(some, {Multiples<Key>(kSize, 2, 1001), true});      // none
  CheckJoin<Key>(some, {Multiples<Key>(kSize, 3, 0), true});         // every third
  CheckJoin<Key>(some, {Multiples<Key>(kSize, 2, kSize), true}, 1);  // those of the second half
  CheckJoin<Key>(some, {Multiples<Key>(5, 2, 20000), true});         // with few
  CheckJoin<Key>({Multiples<Key>(5, 2000, 2000), true}, some);       // few, far apart, with many
  CheckJoin<Key>({Multiples<Key>(3000, 20, 0), true}, some, 3);
  constexpr Key kMax = static_cast<Key>(~Key{0});
  CheckJoin<Key>({{0, 5, kMax, kMax}, true}, {{0, 0, kMax, kMax, kMax}, true});
  CheckJoin<Key>({std::vector<Key>(3000, kMax), false}, {{kMax}, false});
  // Keys that repeat: on one side, on both, over the borders of tiles.
  CheckJoin<Key>({RandomKeys<Key>(kSize, kSize / 4, 1), true}, {Multiples<Key>(kSize, 1, 0), true});
  CheckJoin<Key>({Multiples<Key>(kSize, 1, 0), true}, {RandomKeys<Key>(kSize, kSize / 4, 2), true});
  CheckJoin<Key>({RandomKeys<Key>(kSize, 6000, 3), true}, {RandomKeys<Key>(kSize, 6000, 4), false});
  std::vector<Key> lumps;
  for (Key key = 0; key < 40; ++key) lumps.insert(lumps.end(), key * key, 3 * key);
  CheckJoin<Key>({lumps, true}, {lumps, true}, 2);
}

BOOST_AUTO_TEST_CASE(sides_of_all_sizes) {
  CheckSizes<uint32_t>();
  CheckSizes<uint64_t>();
}

BOOST_AUTO_TEST_CASE(sides_of_all_shapes) {
  CheckShapes<uint32_t>();
  CheckShapes<uint64_t>();
}

// Every entry with every one: more pairs of a tile than one block writes.
BOOST_AUTO_TEST_CASE(one_key_everywhere) {
  const Side<uint32_t> left(std::vector<uint32_t>(3000, 42), true);
  const Side<uint32_t> right(std::vector<uint32_t>(300, 42), true);
  CheckJoin(left, right);
  std::vector<uint64_t> keys = Multiples<uint64_t>(2000, 7, 0);
  keys.insert(keys.end(), 700, 700);
  CheckJoin<uint64_t>({keys, false}, {keys, true}, 1);
}

BOOST_AUTO_TEST_CASE(a_product_that_no_memory_holds_is_counted) {
  const std::vector<uint32_t> keys(200000, 7);
  const DeviceArray<uint32_t> left(keys), right(keys);
  const DeviceEntries a = {DeviceKeys(left.data(), keys.size())};
  const DeviceEntries b = {DeviceKeys(right.data(), keys.size())};
  constexpr uint64_t kCapacity = 100000;
  const DeviceArray<uint64_t> total(2);
  const DeviceArray<RowId> left_rows(kCapacity), right_rows(kCapacity);
  RequireOk(CountDeviceJoin(a, b, total.data(), nullptr));
  RequireOk(JoinDevice(a, b, {left_rows.data(), right_rows.data(), kCapacity, total.data() + 1},
                       nullptr));
  BOOST_TEST(total.ToHost()[0] == uint64_t{40000000000});
  BOOST_TEST(total.ToHost()[1] == uint64_t{40000000000});
  const auto found_left = left_rows.ToHost(), found_right = right_rows.ToHost();
  for (uint64_t i = 0; i < kCapacity; ++i) {
    BOOST_TEST_REQUIRE(found_left[i] == 0u);
    BOOST_TEST_REQUIRE(found_right[i] == i);
  }
}

// The result for unsorted keys is unspecified, but stays within the arguments.
BOOST_AUTO_TEST_CASE(keys_in_no_order_do_no_harm) {
  const auto keys = RandomKeys<uint32_t>(20000, 5000, 5), others = RandomKeys<uint32_t>(9000, 0, 6);
  const DeviceArray<uint32_t> left(keys), right(others);
  const DeviceArray<uint64_t> total(1);
  const DeviceArray<RowId> left_rows(1000), right_rows(1000);
  RequireOk(JoinDevice({DeviceKeys(left.data(), keys.size())},
                       {DeviceKeys(right.data(), others.size())},
                       {left_rows.data(), right_rows.data(), 1000, total.data()}, nullptr));
  RequireOk(CountDeviceJoin({DeviceKeys(left.data(), keys.size())},
                            {DeviceKeys(right.data(), others.size())}, total.data(), nullptr));
  BOOST_TEST((cudaDeviceSynchronize() == cudaSuccess));
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said) {
  const DeviceArray<uint32_t> narrow(3);
  const DeviceArray<uint64_t> wide(3);
  const DeviceEntries a = {DeviceKeys(narrow.data(), 3)}, b = {DeviceKeys(wide.data(), 3)};
  const DeviceEntries text = {DeviceKeys("abcd", narrow.data(), 1)};
  const DeviceEntries many = {DeviceKeys(narrow.data(), size_t{1} << 32)};
  for (const auto& [left, right] : {std::pair(a, b), std::pair(a, text), std::pair(text, text),
                                    std::pair(many, a), std::pair(a, many)}) {
    BOOST_TEST(absl::IsInvalidArgument(CountDeviceJoin(left, right, wide.data(), nullptr)));
    BOOST_TEST(absl::IsInvalidArgument(
        JoinDevice(left, right, {nullptr, nullptr, 0, wide.data()}, nullptr)));
  }
  uint64_t on_host = 0;
  BOOST_TEST(absl::IsInvalidArgument(CountDeviceJoin(a, a, &on_host, nullptr)));
}

BOOST_AUTO_TEST_CASE(a_captured_join_is_done_again_and_again) {
  const auto keys = Multiples<uint64_t>(5000, 3, 0);
  const DeviceArray<uint64_t> left(keys), right(keys), totals(2);
  const DeviceArray<RowId> rows(5000), others(5000);
  const DeviceEntries a = {DeviceKeys(left.data(), 5000)}, b = {DeviceKeys(right.data(), 5000)};
  const Stream stream = RequireOk(Stream::Create());
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t launchable = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  RequireOk(JoinDevice(a, b, {rows.data(), others.data(), 5000, totals.data()}, stream.get()));
  RequireOk(CountDeviceJoin(a, b, totals.data() + 1, stream.get()));
  BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  BOOST_REQUIRE(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess);
  for (const uint64_t first : {uint64_t{0}, uint64_t{3000}, uint64_t{1}}) {
    const auto moved = Multiples<uint64_t>(5000, 3, first);
    BOOST_REQUIRE(cudaMemcpy(right.data(), moved.data(), 40000, cudaMemcpyHostToDevice) ==
                  cudaSuccess);
    BOOST_REQUIRE(cudaGraphLaunch(launchable, stream.get()) == cudaSuccess);
    const uint64_t expected = first % 3 == 0 ? 5000 - first / 3 : 0;
    BOOST_TEST(totals.ToHost()[0] == expected);
    BOOST_TEST(totals.ToHost()[1] == expected);
    if (expected != 0) BOOST_TEST(rows.ToHost()[expected - 1] == 4999u);
    if (expected != 0) BOOST_TEST(others.ToHost()[0] == 0u);
  }
  BOOST_TEST(cudaGraphExecDestroy(launchable) == cudaSuccess);
  BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
}

BOOST_AUTO_TEST_CASE(a_join_that_runs_out_of_memory_leaves_nothing) {
  const auto keys = Multiples<uint32_t>(5000, 1, 0);
  const DeviceArray<uint32_t> device_keys(keys);
  const DeviceArray<uint64_t> total(1);
  const DeviceArray<RowId> rows(5000), others(5000);
  const DeviceEntries side = {DeviceKeys(device_keys.data(), keys.size())};
  const int needed = FailEveryAllocation([&] {
    return JoinDevice(side, side, {rows.data(), others.data(), 5000, total.data()}, nullptr);
  });
  BOOST_TEST(needed >= 4);
  BOOST_TEST((cudaDeviceSynchronize() == cudaSuccess));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
