#include "gpu/packed/kary_directory.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "gpu/runtime/shared_memory.h"
#include "index/layout/wide_key.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(kary_directory_test, NeedsDevice)
namespace {

// Any key.
template <typename Key, typename Random>
Key Draw(Random& random) {
  if constexpr (sizeof(Key) > 8) return static_cast<Key>(random()) << 64 | random();
  return static_cast<Key>(random());
}

// `shared` is the shared memory of a block, 0 for the device's limit.
template <typename Key>
KaryDirectory<Key> Build(const std::vector<Key>& separators, size_t shared) {
  auto buffer = RequireOk(DeviceBuffer<Key>::Allocate(separators.size(), nullptr));
  BOOST_REQUIRE(cudaMemcpy(buffer.data(), separators.data(), buffer.bytes(),
                           cudaMemcpyHostToDevice) == cudaSuccess);
  LimitSharedBytes(shared);
  auto directory = KaryDirectory<Key>::Build(std::move(buffer), nullptr);
  LimitSharedBytes(0);
  RequireOk(directory);
  const size_t predicted = KaryDirectory<Key>::PredictBytes(separators.size());
  if (shared == 0) {
    BOOST_TEST(directory->memory_bytes() == predicted);
  } else {
    BOOST_TEST(directory->memory_bytes() <= predicted);
    BOOST_TEST(directory->top_bytes() <= shared);
  }
  return *std::move(directory);
}

// Separators, keys at and around all of them (at most `most` of those), the ends, and any.
template <typename Key>
std::vector<Key> KeysToFind(const std::vector<Key>& separators, size_t most) {
  auto random = TestRandom(31);
  constexpr Key kMax = static_cast<Key>(~Key{0});
  std::vector<Key> keys = {0, 1, kMax, static_cast<Key>(kMax - 1)};
  const size_t step = separators.size() / most + 1;
  for (size_t i = 0; i < separators.size(); i += step) {
    for (int offset = -2; offset <= 2; ++offset) {
      keys.push_back(separators[i] + static_cast<Key>(offset));
    }
  }
  for (size_t i = 0; i < most; ++i) {
    keys.push_back(Draw<Key>(random));
    if (!separators.empty()) keys.push_back(separators[random() % separators.size()] + 1);
  }
  return keys;
}

template <typename Key>
void Check(const std::string& name, std::vector<Key> separators, size_t shared = 0) {
  BOOST_TEST_CONTEXT(name << ", " << separators.size() << " separators of " << 8 * sizeof(Key)
                          << " bits") {
    if (!std::is_sorted(separators.begin(), separators.end())) {
      std::sort(separators.begin(), separators.end());
    }
    separators.erase(std::unique(separators.begin(), separators.end()), separators.end());
    const KaryDirectory<Key> directory = Build(separators, shared);
    const std::vector<Key> keys = KeysToFind(separators, 20000);
    const DeviceArray<Key> on_device(keys);
    const DeviceArray<uint32_t> found(keys.size());
    RequireOk(FindLeaves(directory, on_device.data(), keys.size(), found.data(), nullptr));
    const std::vector<uint32_t> leaves = found.ToHost();
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto leaf = std::lower_bound(separators.begin(), separators.end(), keys[i]);
      BOOST_REQUIRE_MESSAGE(leaves[i] == static_cast<uint32_t>(leaf - separators.begin()),
                            "key " << static_cast<uint64_t>(keys[i]) << ": leaf " << leaves[i]
                                   << ", not " << leaf - separators.begin());
    }
  }
}

template <typename Key, typename Draw>
std::vector<Key> Separators(size_t count, Draw draw) {
  std::vector<Key> separators(count);
  for (Key& key : separators) key = static_cast<Key>(draw());
  return separators;
}

template <typename Key>
void CheckAllSpreads(size_t count) {
  constexpr Key kMax = static_cast<Key>(~Key{0});
  constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  auto generator = TestRandom(32);
  const auto random = [&] { return Draw<Key>(generator); };
  Check("even", Separators<Key>(count, random));
  Check("dense", Separators<Key>(count, [i = 0]() mutable { return i++; }));
  Check("dense to the end", Separators<Key>(count, [i = kMax]() mutable { return --i; }));
  Check("logarithmic",
        Separators<Key>(count, [&] { return random() >> static_cast<int>(generator() % kBits); }));
  Check("runs of seven", Separators<Key>(count, [&, i = 0, start = Key{0}]() mutable {
          if (i++ % 7 == 0) start = random();
          return start + static_cast<Key>(i % 7);
        }));
  Check("runs of a thousand", Separators<Key>(count, [&, i = 0, start = Key{0}]() mutable {
          if (i++ % 1000 == 0) start = random();
          return start + static_cast<Key>(i % 1000 * 3);
        }));
  Check("both ends", Separators<Key>(count, [&] {
          const Key offset = static_cast<Key>(generator() % (4 * count));
          return generator() % 2 == 0 ? offset : static_cast<Key>(kMax - 1 - offset);
        }));
}

BOOST_AUTO_TEST_CASE(finds_leaves_however_separators_are_spread) {
  // Around a node, and around a top and the first level of nodes under it.
  constexpr size_t kFanOut = KaryDirectoryNode::kFanOut;
  for (size_t count : {size_t{1}, size_t{2}, kFanOut - 2, kFanOut, size_t{5000}}) {
    CheckAllSpreads<uint32_t>(count);
    CheckAllSpreads<uint64_t>(count);
    CheckAllSpreads<WideKey>(count);
  }
  CheckAllSpreads<uint32_t>(100000);
  CheckAllSpreads<uint64_t>(100000);
  CheckAllSpreads<WideKey>(100000);
}

template <typename Key>
void FindsLeavesAroundFullLevels() {
  constexpr size_t kTop = KaryDirectory<Key>::kMaxInTop, kFanOut = KaryDirectoryNode::kFanOut;
  auto generator = TestRandom(34);
  const auto random = [&] { return Draw<Key>(generator); };
  for (size_t count : {kTop - 1, kTop, kTop + 1, kTop * kFanOut - 1, kTop * kFanOut + kFanOut - 1,
                       kTop * kFanOut + kFanOut}) {
    Check("even", Separators<Key>(count, random));
  }
}

BOOST_AUTO_TEST_CASE(finds_leaves_around_full_levels) {
  FindsLeavesAroundFullLevels<uint32_t>();
  FindsLeavesAroundFullLevels<uint64_t>();
  FindsLeavesAroundFullLevels<WideKey>();
}

// The top is at most half of the size that would fit otherwise.
BOOST_AUTO_TEST_CASE(has_a_top_that_fits_what_a_block_may_take) {
  auto random = TestRandom(35);
  for (size_t shared : {size_t{99} << 10, size_t{64} << 10, size_t{48} << 10, size_t{5000}}) {
    for (size_t count : {size_t{5}, size_t{600}, size_t{30000}, size_t{600000}}) {
      Check("even", Separators<uint32_t>(count, random), shared);
      Check("even", Separators<uint64_t>(count, random), shared);
    }
  }
}

BOOST_AUTO_TEST_CASE(has_one_leaf_without_separators) {
  Check<uint32_t>("none", {});
  Check<uint64_t>("none", {});
}

BOOST_AUTO_TEST_CASE(finds_leaves_through_three_levels) {
  constexpr size_t kFanOut = KaryDirectoryNode::kFanOut;
  const size_t count = (KaryDirectory<uint64_t>::kMaxInTop + 1) * kFanOut * kFanOut + 12345;
  std::vector<uint64_t> separators(count);
  for (size_t i = 0; i < count; ++i) separators[i] = i * i;
  Check("squares", std::move(separators));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
