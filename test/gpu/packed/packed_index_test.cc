#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/shared_memory.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
namespace {

std::unique_ptr<OrderedIndex> Make(const std::string& factory, SortedRun run) {
  return RequireOk(MakeOrderedIndex(factory, std::move(run)));
}

// Every combination that a key of `key_bits` bits allows.
std::vector<std::string> Factories(int key_bits) {
  std::vector<std::string> factories = {"gpu:packed", "gpu:packed,directory=tree",
                                        "gpu:packed,rows"};
  for (int bits = 16; bits <= key_bits; bits += 16) {
    if (key_bits == 32 && bits == 48) continue;
    const std::string option = ",bits=" + std::to_string(bits);
    factories.push_back("gpu:packed" + option);
    factories.push_back("gpu:packed,directory=tree" + option);
  }
  return factories;
}

// Keys whose numbers are drawn by `draw`, distinct.
template <typename Key, typename Draw>
OracleData<Key> Distinct(const std::string& name, size_t size, Draw draw) {
  std::set<Key> keys;
  while (keys.size() < size) keys.insert(static_cast<Key>(draw()));
  return oracle::FinishIntegers(name, std::vector<Key>(keys.begin(), keys.end()));
}

// Sets that a bitmap of cells finds hard: what a region holds is uneven in one way or another.
template <typename Key>
std::vector<OracleData<Key>> UnevenSets(size_t size) {
  auto random = TestRandom(11);
  constexpr Key kMax = std::numeric_limits<Key>::max();
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  std::vector<OracleData<Key>> sets;
  sets.push_back(Distinct<Key>("runs of ten", size, [&, start = uint64_t{0}, i = 0]() mutable {
    if (i++ % 10 == 0) start = random();
    return start + static_cast<uint64_t>(i % 10);
  }));
  sets.push_back(Distinct<Key>("logarithmic", std::min<size_t>(size, 20000), [&] {
    return (random() >> (64 - kBits)) >> (random() % (kBits - 8));
  }));
  sets.push_back(Distinct<Key>("dense at both ends", size, [&] {
    const uint64_t offset = random() % (2 * size);
    return random() % 2 == 0 ? offset : kMax - offset;
  }));
  sets.push_back(Distinct<Key>("one dense run in a sparse space", size, [&] {
    return random() % 4 == 0 ? random() : (uint64_t{kMax} / 3) + random() % (2 * size);
  }));
  sets.push_back(Distinct<Key>("the middle of the space", size,
                               [&] { return uint64_t{kMax} / 2 + random() % (16 * size); }));
  return sets;
}

// Asks a large batch in device memory, as a device would answer it whose blocks may take `shared`
// bytes of shared memory; returns whether that took memory, for the counter of blocks that stay.
template <typename Key>
bool SearchTakesACounter(const DeviceIndex& index, const std::vector<Key>& keys, size_t shared) {
  constexpr size_t kQueries = size_t{1} << 18;
  auto random = TestRandom(14);
  std::vector<Key> queries(kQueries);
  for (Key& query : queries) query = keys[random() % keys.size()] + static_cast<Key>(random() % 3);
  const DeviceArray<Key> batch(queries);
  const DeviceArray<Position> found(kQueries);
  const DeviceBatch lower_bounds =
      DeviceBatch::LowerBound(DeviceKeys(batch.data(), batch.size()), found.data());
  LimitSharedBytes(shared);
  FailDeviceAllocationsAfter(0);
  absl::Status status = index.Answer(lower_bounds, nullptr);
  const bool takes = absl::IsResourceExhausted(status);
  FailDeviceAllocationsAfter(-1);
  if (takes) status = index.Answer(lower_bounds, nullptr);
  LimitSharedBytes(0);
  RequireOk(status);
  const std::vector<Position> positions = found.ToHost();
  size_t wrong = 0;
  for (size_t i = 0; i < kQueries; ++i) {
    const auto lower = std::lower_bound(keys.begin(), keys.end(), queries[i]);
    wrong += positions[i] != static_cast<Position>(lower - keys.begin());
  }
  BOOST_TEST(wrong == 0u);
  return takes;
}

template <typename Key>
void CheckSmallSharedMemory() {
  auto random = TestRandom(15);
  const auto data = Distinct<Key>("even", 1 << 20, [&] { return random(); });
  constexpr size_t kLittle = 9000, kNone = 100;
  const auto make = [&](const char* factory) {
    return RequireOk(MakeDeviceIndex(factory, OracleRun(data)));
  };
  // The region table does not get smaller.
  const auto bitmap = make("gpu:packed,directory=bitmap");
  BOOST_TEST(SearchTakesACounter(*bitmap, data.keys, 0));
  BOOST_TEST(!SearchTakesACounter(*bitmap, data.keys, kLittle));
  const auto tree = make("gpu:packed,directory=tree");
  BOOST_TEST(SearchTakesACounter(*tree, data.keys, 0));
  BOOST_TEST(!SearchTakesACounter(*tree, data.keys, kNone));
  // The top of a tree does.
  LimitSharedBytes(kLittle);
  const auto low = make("gpu:packed,directory=tree");
  LimitSharedBytes(0);
  BOOST_TEST(SearchTakesACounter(*low, data.keys, kLittle));
  BOOST_TEST(!SearchTakesACounter(*low, data.keys, kNone));
  BOOST_TEST(SearchTakesACounter(*low, data.keys, 0));
}

// Sets of which few keys repeat, so that leaves may hold all entries: at all places of leaves, with
// and without zeros in the bits that they keep.
template <typename Key>
std::vector<OracleData<Key>> NearUniqueSets(size_t size) {
  auto random = TestRandom(16);
  constexpr Key kMax = std::numeric_limits<Key>::max();
  const auto repeating = [&](const char* name, std::vector<Key> keys, auto repeat) {
    const size_t distinct = keys.size();
    for (size_t i = 0; i < distinct; ++i) {
      for (size_t again = repeat(i); again > 0; --again) keys.push_back(keys[i]);
    }
    return oracle::FinishIntegers(name, std::move(keys));
  };
  std::vector<Key> even(size), dense(size), thousands(size);
  for (size_t i = 0; i < size; ++i) {
    even[i] = static_cast<Key>(random());
    dense[i] = static_cast<Key>(i);
    thousands[i] = static_cast<Key>(i << 16);
  }
  std::vector<OracleData<Key>> sets;
  sets.push_back(
      repeating("every twentieth twice", even, [](size_t i) { return i % 20 == 0 ? 1 : 0; }));
  sets.push_back(repeating("dense, some twice", dense, [&](size_t) { return random() % 20 == 0; }));
  sets.push_back(repeating("a few up to 25 times", even,
                           [&](size_t) { return random() % 300 == 0 ? random() % 25 : 0; }));
  sets.push_back(repeating("zeros in the low bits, up to 12 times", thousands,
                           [&](size_t) { return random() % 100 == 0 ? random() % 12 : 0; }));
  for (const size_t zeros : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 19, 20, 31, 32, 33, 40}) {
    sets.push_back(repeating("the least and the greatest key several times", dense,
                             [&](size_t i) { return i == 0 ? zeros : 0; }));
    sets.back().keys.insert(sets.back().keys.end(), zeros, kMax);
    for (size_t i = 0; i < zeros; ++i) sets.back().row_ids.push_back(static_cast<RowId>(i));
  }
  // Too long a chain for that.
  sets.push_back(repeating("one key a thousand times", even, [&](size_t i) {
    return i == size / 2 ? std::min<size_t>(1000, size / 10) : 0;
  }));
  return sets;
}

template <typename Key>
void CheckNearUnique(size_t size) {
  for (const auto& data : NearUniqueSets<Key>(size)) {
    for (const std::string& factory : Factories(8 * static_cast<int>(sizeof(Key)))) {
      BOOST_TEST_CONTEXT(factory << ", " << data.name << ", " << data.keys.size() << " entries") {
        CheckAgainstOracle(*Make(factory, OracleRun(data)), data);
      }
    }
  }
}

BOOST_FIXTURE_TEST_SUITE(packed_index_test, NeedsDevice)

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_where_few_keys_repeat) {
  for (const size_t size : {size_t{30}, size_t{3000}}) {
    CheckNearUnique<uint32_t>(size);
    CheckNearUnique<uint64_t>(size);
  }
}

template <typename Key>
void CheckEqualRanges(const OracleData<Key>& data, bool in_order) {
  std::vector<Key> queries;
  auto random = TestRandom(17);
  while (queries.size() < (size_t{1} << 17) + 33) {
    queries.push_back(data.keys[random() % data.keys.size()] + static_cast<Key>(random() % 2));
  }
  if (in_order) std::sort(queries.begin(), queries.end());
  const DeviceArray<Key> keys(queries);
  const DeviceArray<Position> begin(queries.size()), end(queries.size());
  for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree"}) {
    const auto index = RequireOk(MakeDeviceIndex(factory, OracleRun(data)));
    RequireOk(index->Answer(
        DeviceBatch::EqualRange(DeviceKeys(keys.data(), keys.size()), begin.data(), end.data()),
        nullptr));
    const std::vector<Position> begins = begin.ToHost(), ends = end.ToHost();
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto [lower, upper] = std::equal_range(data.keys.begin(), data.keys.end(), queries[i]);
      BOOST_REQUIRE(begins[i] == static_cast<Position>(lower - data.keys.begin()));
      BOOST_REQUIRE(ends[i] == static_cast<Position>(upper - data.keys.begin()));
    }
  }
}

BOOST_AUTO_TEST_CASE(large_batches_of_equal_ranges_where_few_keys_repeat) {
  for (const bool in_order : {false, true}) {
    for (const auto& data : NearUniqueSets<uint32_t>(40000)) CheckEqualRanges(data, in_order);
    CheckEqualRanges(NearUniqueSets<uint64_t>(40000)[2], in_order);
  }
}

template <typename Key>
void CheckNearUniqueMemory() {
  auto random = TestRandom(18);
  std::vector<Key> keys(size_t{1} << 20);
  for (Key& key : keys) key = static_cast<Key>(random());
  const auto bytes = [](std::vector<Key> some) {
    const auto data = oracle::FinishIntegers("", std::move(some));
    return static_cast<double>(
        RequireOk(MakeDeviceIndex("gpu:auto", OracleRun(data)))->memory_bytes());
  };
  std::vector<Key> few_twice = keys;
  std::copy(keys.begin(), keys.begin() + 5000, few_twice.begin() + 5000);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const double of_unique = bytes(keys), of_few_twice = bytes(few_twice);
  BOOST_TEST_MESSAGE("unique: " << of_unique << " bytes, near unique: " << of_few_twice);
  BOOST_TEST(of_few_twice < 1.03 * of_unique);
}

// A few keys that repeat cost hardly more than none.
BOOST_AUTO_TEST_CASE(near_unique_keys_take_what_unique_ones_do) {
  CheckNearUniqueMemory<uint32_t>();
  CheckNearUniqueMemory<uint64_t>();
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_on_32_bit_keys) {
  for (const std::string& factory : Factories(32)) {
    BOOST_TEST_CONTEXT(factory) {
      CheckCatalogue<uint32_t>([&](SortedRun run) { return Make(factory, std::move(run)); });
    }
  }
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_on_64_bit_keys) {
  for (const std::string& factory : Factories(64)) {
    BOOST_TEST_CONTEXT(factory) {
      CheckCatalogue<uint64_t>([&](SortedRun run) { return Make(factory, std::move(run)); });
    }
  }
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_on_uneven_keys) {
  for (const auto& data : UnevenSets<uint32_t>(60000)) {
    for (const std::string& factory : Factories(32)) {
      BOOST_TEST_CONTEXT(factory << ", " << data.name) {
        CheckAgainstOracle(*Make(factory, OracleRun(data)), data);
      }
    }
  }
  for (const auto& data : UnevenSets<uint64_t>(60000)) {
    for (const std::string& factory : Factories(64)) {
      BOOST_TEST_CONTEXT(factory << ", " << data.name) {
        CheckAgainstOracle(*Make(factory, OracleRun(data)), data);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_on_a_million_keys) {
  auto random = TestRandom(12);
  for (size_t size : {(size_t{1} << 20) - 1, (size_t{1} << 20) + 1}) {
    const auto narrow = Distinct<uint32_t>("u32", size, [&] { return random(); });
    const auto wide = Distinct<uint64_t>("u64", size, [&] { return random(); });
    CheckAgainstOracle(*Make("gpu:packed", OracleRun(narrow)), narrow);
    CheckAgainstOracle(*Make("gpu:packed", OracleRun(wide)), wide);
    CheckAgainstOracle(*Make("gpu:packed,directory=tree", OracleRun(wide)), wide);
  }
}

BOOST_AUTO_TEST_CASE(takes_a_bitmap_for_even_keys_and_a_tree_for_others) {
  auto random = TestRandom(13);
  const auto even = Distinct<uint32_t>("even", 200000, [&] { return random(); });
  BOOST_TEST(Make("gpu:packed", OracleRun(even))->description() ==
             "gpu:packed,directory=bitmap,bits=32");
  const auto uneven = Distinct<uint64_t>(
      "uneven", 200000, [&] { return random() % 2 == 0 ? random() : random() % 1000000 << 20; });
  BOOST_TEST(Make("gpu:packed", OracleRun(uneven))->description().find("directory=tree") !=
             std::string::npos);
  BOOST_TEST(absl::IsFailedPrecondition(
      MakeOrderedIndex("gpu:packed,directory=bitmap", OracleRun(uneven)).status()));
}

BOOST_AUTO_TEST_CASE(large_batches_are_answered_where_a_block_gets_little_shared_memory) {
  CheckSmallSharedMemory<uint32_t>();
  CheckSmallSharedMemory<uint64_t>();
}

BOOST_AUTO_TEST_CASE(refuses_bits_that_keys_do_not_have) {
  const auto run = OracleRun(oracle::FinishIntegers<uint32_t>("few", {1, 2, 3}));
  for (const char* bits : {"48", "64", "17"}) {
    BOOST_TEST(absl::IsInvalidArgument(
        MakeOrderedIndex(std::string("gpu:packed,bits=") + bits, run).status()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
