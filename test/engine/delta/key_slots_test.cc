#include "engine/delta/key_slots.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "test/test_random.h"

namespace cairn {

BOOST_AUTO_TEST_SUITE(key_slots_test)

BOOST_AUTO_TEST_CASE(keys_are_found_by_their_hashes) {
  auto random = TestRandom();
  for (const size_t size : {1, 2, 3, 31, 32, 33, 1000, 50000}) {
    KeySlots slots(size);
    std::vector<uint64_t> hashes(size);
    for (size_t i = 0; i < size; ++i) {
      hashes[i] = random();
      BOOST_TEST_REQUIRE(slots.Add(hashes[i], static_cast<Position>(i)));
    }
    BOOST_TEST(slots.memory_bytes() <= 16 * size + 1024);
    for (size_t i = 0; i < size; ++i) {
      slots.Prefetch(hashes[i]);
      const auto is_key = [&](Position position) { return hashes[position] == hashes[i]; };
      BOOST_TEST_REQUIRE(slots.Find(hashes[i], is_key) == i);
      BOOST_TEST_REQUIRE(slots.Find(random(), [](Position) { return false; }) == KeySlots::kNone);
    }
  }
}

// The caller distinguishes different keys with the same hash; too many of them overflow.
BOOST_AUTO_TEST_CASE(keys_of_one_hash) {
  for (const uint64_t hash : {uint64_t{0}, uint64_t{0x123456789ABCDEF0}, UINT64_MAX}) {
    KeySlots slots(1000);
    Position added = 0;
    while (added < 1000 && slots.Add(hash, added)) ++added;
    BOOST_TEST(added > 8u);
    BOOST_TEST(added < 1000u);
    for (Position wanted = 0; wanted < added; ++wanted) {
      BOOST_TEST(slots.Find(hash, [=](Position p) { return p == wanted; }) == wanted);
    }
    BOOST_TEST(slots.Find(hash, [](Position) { return false; }) == KeySlots::kNone);
    BOOST_TEST(slots.Candidate(hash) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(without_keys_nothing_is_found) {
  const KeySlots slots(0);
  for (const uint64_t hash : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX}) {
    BOOST_TEST(slots.Candidate(hash) == KeySlots::kNone);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
