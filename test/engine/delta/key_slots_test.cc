#include "engine/delta/key_slots.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "cpu_fast/simd/key_filter.h"

namespace cairn {

BOOST_AUTO_TEST_SUITE(key_slots_test)

BOOST_AUTO_TEST_CASE(keys_are_found_and_others_are_not) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{63}, size_t{10000}}) {
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < 2 * size + 10; ++i) keys.push_back((i + 1) * 0x9E3779B97F4A7C15);
    KeySlots slots(size);
    for (size_t i = 0; i < size; ++i) {
      BOOST_REQUIRE(slots.Add(KeyFilter::Hash(keys[i]), static_cast<Position>(i)));
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const Position found = slots.Find(KeyFilter::Hash(keys[i]), [&](Position p) {
        BOOST_REQUIRE(p < size);
        return keys[p] == keys[i];
      });
      BOOST_REQUIRE(found == (i < size ? static_cast<Position>(i) : KeySlots::kNone));
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_hashes_are_told_apart_by_the_keys) {
  KeySlots slots(3);
  for (Position p : {0, 1, 2}) BOOST_REQUIRE(slots.Add(~uint64_t{0}, p));
  for (Position wanted : {0, 1, 2}) {
    BOOST_TEST(slots.Find(~uint64_t{0}, [&](Position p) { return p == wanted; }) == wanted);
  }
  BOOST_TEST(slots.Find(~uint64_t{0}, [](Position) { return false; }) == KeySlots::kNone);
  BOOST_TEST(slots.Find(0, [](Position) { return true; }) == KeySlots::kNone);
}

BOOST_AUTO_TEST_CASE(too_many_equal_hashes_overflow) {
  for (const uint64_t hash : {uint64_t{0}, ~uint64_t{0}}) {
    KeySlots slots(1000);
    Position added = 0;
    while (added < 1000 && slots.Add(hash, added)) ++added;
    BOOST_TEST(added == 64u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
