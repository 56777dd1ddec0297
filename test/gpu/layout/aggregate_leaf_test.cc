#include "gpu/layout/aggregate_leaf.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(aggregate_leaf_test)
namespace {

static_assert(AggregateLeafEntries(AggregateKind::kCounts, 2) == 28);
static_assert(AggregateLeafEntries(AggregateKind::kSums32, 2) == 8);
static_assert(AggregateLeafEntries(AggregateKind::kSums32, 4) == 6);
static_assert(AggregateLeafEntries(AggregateKind::kSums32, 8) == 4);
static_assert(AggregateLeafEntries(AggregateKind::kSums64, 8) == 2);
static_assert(AggregateLeafEntries(AggregateKind::kFloatSums, 8) == 2);
static_assert(sizeof(AggregateLeaf<AggregateKind::kExtremes64, 2>) == 64);

// Fills a leaf with `entries` random entries, and checks all its answers.
template <AggregateKind kKind, int kKeyBytes>
void CheckLeaf(int entries, uint64_t seed) {
  using Leaf = AggregateLeaf<kKind, kKeyBytes>;
  using Value = typename Leaf::Value;
  constexpr uint64_t kMask = ~uint64_t{0} >> (64 - 8 * kKeyBytes);
  auto random = TestRandom(seed);
  std::vector<uint64_t> keys;
  for (int i = 0; i < entries; ++i) keys.push_back(i == 0 ? kMask : random() & kMask);
  std::sort(keys.begin(), keys.end());
  std::vector<Value> values;
  for (int i = 0; i < entries; ++i) values.push_back(static_cast<Value>(random()));
  const auto nothing = static_cast<Value>(random());

  Leaf leaf;
  leaf.Clear(0x12345678, 0x9ABCDEF0, nothing);
  for (int i = 0; i < entries; ++i) {
    // Bits above the leaf's are not stored.
    leaf.SetKey(i, kKeyBytes == 8 ? keys[i] : keys[i] | uint64_t{7} << 8 * kKeyBytes);
    leaf.SetValue(i, values[i]);
  }
  BOOST_TEST(leaf.position() == 0x12345678u);
  BOOST_TEST(leaf.link() == 0x9ABCDEF0u);
  for (const uint64_t key : {uint64_t{0}, kMask, kMask / 2, random() & kMask}) {
    for (const uint64_t near : {key - 1, key, key + 1}) {
      const auto less = std::lower_bound(keys.begin(), keys.end(), near & kMask) - keys.begin();
      BOOST_TEST(leaf.CountLess(near) == less);
    }
  }
  if constexpr (kKind != AggregateKind::kCounts) {
    for (int i = 0; i < Leaf::kEntries; ++i) {
      BOOST_TEST((leaf.value(i) == (i < entries ? values[i] : nothing)));
    }
  }
  if constexpr (HasSums(kKind)) {
    using Sum = typename Leaf::Sum;
    Sum sum = static_cast<Sum>(random());
    if constexpr (sizeof(Sum) == 16) sum |= Sum{0xFEDCBA98} << 64;
    leaf.SetSumBefore(sum);
    for (int i = 0; i <= entries; ++i) {
      BOOST_TEST((leaf.SumBefore(i) == sum));
      if (i < entries) sum += values[i];
    }
  }
  if constexpr (HasGroups(kKind)) {
    leaf.SetBeforeAndBehind(Value{3}, nothing);
    BOOST_TEST((leaf.before() == Value{3}));
    BOOST_TEST((leaf.behind() == nothing));
  }
  BOOST_TEST(leaf.position() == 0x12345678u);
  BOOST_TEST(leaf.link() == 0x9ABCDEF0u);
}

template <AggregateKind kKind>
void CheckKind() {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int i = 0; i <= AggregateLeafEntries(kKind, 2); ++i) CheckLeaf<kKind, 2>(i, seed);
    for (int i = 0; i <= AggregateLeafEntries(kKind, 4); ++i) CheckLeaf<kKind, 4>(i, seed);
    for (int i = 0; i <= AggregateLeafEntries(kKind, 8); ++i) CheckLeaf<kKind, 8>(i, seed);
  }
}

BOOST_AUTO_TEST_CASE(a_leaf_gives_back_what_it_was_filled_with) {
  CheckKind<AggregateKind::kCounts>();
  CheckKind<AggregateKind::kSums32>();
  CheckKind<AggregateKind::kSums64>();
  CheckKind<AggregateKind::kExtremes32>();
  CheckKind<AggregateKind::kExtremes64>();
  CheckKind<AggregateKind::kFloatSums>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
