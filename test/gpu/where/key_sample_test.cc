#include "gpu/where/key_sample.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "test/test_random.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(key_sample_test)
namespace {

KeySample SampleOf(const std::vector<uint64_t>& keys) {
  std::vector<uint64_t> sample;
  for (uint64_t i = 0; i < KeySample::SizeFor(keys.size()); ++i) {
    sample.push_back(keys[KeySample::PositionOf(i, keys.size())]);
  }
  return KeySample(keys.size(), std::move(sample));
}

uint64_t CountIn(const std::vector<uint64_t>& keys, DeviceKeyRange range) {
  if (range.first > range.last) return 0;
  return static_cast<uint64_t>(std::upper_bound(keys.begin(), keys.end(), range.last) -
                               std::lower_bound(keys.begin(), keys.end(), range.first));
}

BOOST_AUTO_TEST_CASE(first_and_last_key_are_in_it) {
  for (const uint64_t entries : {uint64_t{1}, uint64_t{2}, KeySample::kMaxKeys - 1,
                                 KeySample::kMaxKeys, KeySample::kMaxKeys + 1, kMaxEntries}) {
    const uint64_t size = KeySample::SizeFor(entries);
    BOOST_TEST(KeySample::PositionOf(0, entries) == 0);
    BOOST_TEST(KeySample::PositionOf(size - 1, entries) == entries - 1);
    for (uint64_t i = 1; i < size; ++i) {
      BOOST_REQUIRE(KeySample::PositionOf(i - 1, entries) < KeySample::PositionOf(i, entries));
    }
  }
}

BOOST_AUTO_TEST_CASE(bounds_hold_for_any_keys) {
  auto random = TestRandom();
  for (const size_t size : {1, 2, 100, 4095, 4096, 4097, 50000}) {
    for (const uint64_t keys_of : {uint64_t{1}, uint64_t{3}, uint64_t{1000}, uint64_t{0}}) {
      std::vector<uint64_t> keys(size);
      for (uint64_t& key : keys) key = keys_of == 0 ? random() : random() % keys_of * 7;
      if (size > 2) keys[0] = 0, keys[1] = UINT64_MAX;
      std::sort(keys.begin(), keys.end());
      const KeySample sample = SampleOf(keys);
      for (int i = 0; i < 200; ++i) {
        const auto end = [&] {
          const uint64_t key = keys[random() % size];
          return i % 7 == 0 ? random() : key + random() % 3 - 1;
        };
        const DeviceKeyRange range = i == 0 ? DeviceKeyRange{} : DeviceKeyRange{end(), end()};
        const EntryEstimate of = sample.Estimate(range);
        const uint64_t exact = CountIn(keys, range);
        BOOST_TEST_CONTEXT(size << " keys, " << keys_of << " of them: " << range.first << " to "
                                << range.last) {
          BOOST_TEST(of.least <= exact);
          BOOST_TEST(exact <= of.most);
          BOOST_TEST(of.expected >= static_cast<double>(of.least));
          BOOST_TEST(of.expected <= static_cast<double>(of.most));
          // A sampled key is every twelfth.
          BOOST_TEST(of.most - of.least <= 2 * (size / 4095 + 1));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(no_entries) {
  const EntryEstimate of = KeySample().Estimate({0, UINT64_MAX});
  BOOST_TEST(of.most == 0);
  BOOST_TEST(of.expected == 0);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
