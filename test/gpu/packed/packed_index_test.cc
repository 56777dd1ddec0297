#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/packed/packed_sets.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(packed_index_test, NeedsDevice)
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

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_where_few_keys_repeat) {
  for (const size_t size : {size_t{30}, size_t{3000}}) {
    CheckNearUnique<uint32_t>(size);
    CheckNearUnique<uint64_t>(size);
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
  // A run of ten is a chain of two leaves of six.
  const auto runs =
      Distinct<uint64_t>("runs of ten", 200000, [&, start = uint64_t{0}, i = 0]() mutable {
        if (i++ % 10 == 0) start = random() >> 12;
        return start + static_cast<uint64_t>(i % 10);
      });
  BOOST_TEST(Make("gpu:packed,directory=bitmap,bits=48", OracleRun(runs))->description() ==
             "gpu:packed,directory=bitmap,bits=48");
  // So few are better under a tree, and leaves of five would be half empty.
  BOOST_TEST(Make("gpu:packed,bits=48", OracleRun(runs))->description() ==
             "gpu:packed,directory=tree,bits=48");
  BOOST_TEST(absl::IsFailedPrecondition(
      MakeOrderedIndex("gpu:packed,directory=bitmap,bits=64", OracleRun(runs)).status()));
  const auto uneven = Distinct<uint64_t>(
      "uneven", 200000, [&] { return random() % 2 == 0 ? random() : random() % 1000000 << 20; });
  BOOST_TEST(Make("gpu:packed", OracleRun(uneven))->description().find("directory=tree") !=
             std::string::npos);
  BOOST_TEST(absl::IsFailedPrecondition(
      MakeOrderedIndex("gpu:packed,directory=bitmap", OracleRun(uneven)).status()));
}

BOOST_AUTO_TEST_CASE(refuses_bits_that_keys_do_not_have) {
  const auto run = OracleRun(oracle::FinishIntegers<uint32_t>("few", {1, 2, 3}));
  for (const char* bits : {"48", "64", "17"}) {
    BOOST_TEST(absl::IsInvalidArgument(
        MakeOrderedIndex(std::string("gpu:packed,bits=") + bits, run).status()));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
