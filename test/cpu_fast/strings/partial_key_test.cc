#include "cpu_fast/strings/partial_key.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "index/strings/range_minimum.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(partial_key_test, *StartsNoThread())
namespace {

bool BitOf(const std::string& key, uint64_t bit) {
  return bit / 8 < key.size() && (static_cast<uint8_t>(key[bit / 8]) >> (7 - bit % 8) & 1) != 0;
}

// A key with the zeros that partial keys may need after it.
struct Padded {
  std::string bytes;

  explicit Padded(std::string key) : bytes(std::move(key)) {
    bytes.resize(std::max<size_t>(bytes.size(), 8));
  }
  PaddedKey key() const { return {bytes.data(), bytes.size() - 8}; }
};

BOOST_AUTO_TEST_CASE(the_first_different_bit_is_that_of_a_scan_over_all_bits) {
  auto random = TestRandom();
  const auto any = [&random] {
    std::string s(random() % 20, '\0');
    if (!s.empty() && random() % 3 != 0) s[random() % s.size()] = static_cast<char>(random());
    return s;
  };
  for (int i = 0; i < 100000; ++i) {
    const std::string a = any(), b = any();
    uint64_t expected = 0;
    while (expected < 160 && BitOf(a, expected) == BitOf(b, expected)) ++expected;
    BOOST_REQUIRE(FirstDifferentBit(a, b) == (expected == 160 ? kNoBit : expected));
    if (expected < 160) BOOST_REQUIRE((a < b) == BitOf(b, expected));
  }
}

BOOST_AUTO_TEST_CASE(partial_keys_and_those_of_prefixes_are_the_bits_in_order) {
  auto random = TestRandom();
  for (int i = 0; i < 20000; ++i) {
    std::string key(random() % 40, '\0');
    for (char& c : key) c = static_cast<char>(random());
    PartialKeyBitSet set(15);
    std::vector<uint32_t> bits;
    const uint64_t around = random() % 300;
    for (int k = 0; k < 30; ++k) {
      const auto bit = static_cast<uint32_t>(around + random() % (random() % 2 == 0 ? 20 : 200));
      const bool there = std::find(bits.begin(), bits.end(), bit) != bits.end();
      const bool added = set.Add(bit);
      BOOST_REQUIRE(added || !there);
      if (added && !there) bits.push_back(bit);
    }
    BOOST_REQUIRE(set.size() == bits.size());
    std::sort(bits.begin(), bits.end());
    const Padded padded(key);
    const KeyPrefix prefix = {random() % 400, random() % 2 == 0};
    uint32_t expected = 0, expected_prefix = 0;
    for (uint32_t bit : bits) {
      expected = expected << 1 | BitOf(key, bit);
      expected_prefix = expected_prefix << 1 | (bit < prefix.bits ? BitOf(key, bit) : prefix.ones);
    }
    const uint32_t partial_key = PartialKeyOf(set.bits(), padded.key());
    BOOST_REQUIRE(partial_key == expected);
    BOOST_REQUIRE(PartialKeyOfPrefix(set.bits(), partial_key, prefix) == expected_prefix);
    for (size_t k = 0; k < bits.size(); ++k) {
      BOOST_REQUIRE(set.Place(bits[k]) == uint32_t{1} << (bits.size() - 1 - k));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_set_of_bits_refuses_what_two_windows_of_eight_bytes_cannot_hold) {
  PartialKeyBitSet set(15);
  BOOST_TEST(set.Add(100));
  BOOST_TEST(set.Add(100 + 400));
  BOOST_TEST(!set.Add(100 + 200));
  BOOST_TEST(!set.Add(3));
  BOOST_TEST(set.Add(100 + 59));  // the last bit of the first window
  BOOST_TEST(set.size() == 3u);
  PartialKeyBitSet few(1);
  BOOST_TEST(few.Add(7));
  BOOST_TEST(few.Add(7));
  BOOST_TEST(!few.Add(8));
}

BOOST_AUTO_TEST_CASE(the_least_of_a_range_is_that_of_a_scan) {
  auto random = TestRandom();
  for (size_t size : {1, 2, 15, 16, 17, 33, 255, 256, 257, 5000, 70000}) {
    std::vector<uint32_t> values(size);
    for (uint32_t& value : values) value = static_cast<uint32_t>(random() % (size + 5));
    const RangeMinimum minimum(values);
    for (int i = 0; i < 1000; ++i) {
      const size_t first = random() % size, last = first + 1 + random() % (size - first);
      const auto expected = std::min_element(values.begin() + static_cast<ptrdiff_t>(first),
                                             values.begin() + static_cast<ptrdiff_t>(last));
      BOOST_REQUIRE(minimum.ArgMin(first, last) == static_cast<size_t>(expected - values.begin()));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
