#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gpu/packed/packed_size.h"

// The number of packed leaves for keys that need more leaves than can be numbered. Requires no
// device, and no memory for the keys.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(leaf_count_test)
namespace {

// `keys` scattered keys, each in its own block, after a block without keys.
template <typename Key>
KeySurvey<Key> Scattered(uint64_t keys) {
  KeySurvey<Key> survey = {};
  survey.distinct = keys;
  for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
    survey.blocks[width] = survey.gaps[width] = keys;
  }
  return survey;
}

PackedIndexOptions OfBits(int bits) {
  PackedIndexOptions options;
  options.bits = bits;
  return options;
}

BOOST_AUTO_TEST_CASE(leaves_are_counted_in_64_bits_and_refused_beyond_32) {
  constexpr uint64_t kHalf = uint64_t{1} << 31;
  // Two leaves a key: the most that can be numbered, and one key more.
  for (const auto& [keys, fits] :
       {std::pair{kHalf - 1, true}, {kHalf, false}, {kHalf + 5, false}, {kMaxEntries, false}}) {
    for (int bits : {16, 32, 48}) {
      const auto bounds = BoundPackedBytes(keys, Scattered<uint64_t>(keys), OfBits(bits));
      BOOST_TEST(bounds.min_leaves == 2 * keys);
      const absl::Status status = CheckLeafCount(bounds.min_leaves, bits);
      BOOST_TEST(status.ok() == fits, keys << " keys: " << status);
      if (!fits) {
        BOOST_TEST(absl::IsInvalidArgument(status));
        BOOST_TEST(absl::StrContains(status.message(), std::to_string(2 * keys)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(leaves_of_whole_keys_are_always_few_enough) {
  const auto wide = BoundPackedBytes(kMaxEntries, Scattered<uint64_t>(kMaxEntries), OfBits(64));
  BOOST_TEST(CheckLeafCount(wide.min_leaves, 64).ok());
  const auto narrow = BoundPackedBytes(kMaxEntries, Scattered<uint32_t>(kMaxEntries), OfBits(32));
  BOOST_TEST(CheckLeafCount(narrow.min_leaves, 32).ok());
  // The choice with the least memory is never larger.
  for (uint64_t keys : {uint64_t{1} << 30, uint64_t{1} << 31, kMaxEntries}) {
    const auto best = BoundPackedBytes(keys, Scattered<uint64_t>(keys), OfBits(0));
    BOOST_TEST(CheckLeafCount(best.min_leaves, 64).ok());
  }
}

BOOST_AUTO_TEST_CASE(the_most_leaves_are_the_most_numbers) {
  BOOST_TEST(CheckLeafCount(UINT32_MAX, 16).ok());
  BOOST_TEST(!CheckLeafCount(uint64_t{UINT32_MAX} + 1, 16).ok());
  BOOST_TEST(!CheckLeafCount(uint64_t{1} << 33, 16).ok());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
