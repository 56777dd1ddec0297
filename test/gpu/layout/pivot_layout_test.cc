#include "gpu/layout/pivot_layout.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cairn/types.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(pivot_layout_test)
namespace {

static_assert(PivotLayout<2>::FullLevels(1 << 28) == 28);
static_assert(PivotLayout<2>(1 << 28, 24).partition_entries() == 16);
static_assert(PivotLayout<2>(1 << 28, 24).slots() == (1 << 24) - 1);
static_assert(PivotLayout<17>::FullLevels(16) == 0);
static_assert(PivotLayout<17>::FullLevels(17) == 1);

template <int kFanOut>
std::vector<uint64_t> Sizes() {
  std::vector<uint64_t> sizes(200);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (uint64_t power = kFanOut - 1; power < 300000; power *= kFanOut) {
    for (uint64_t size : {power - 1, power, power + 1, 2 * power}) sizes.push_back(size);
  }
  return sizes;
}

// Calls check(layout) for every number of levels.
template <int kFanOut, typename Check>
void ForEachLayout(Check check) {
  for (uint64_t size : Sizes<kFanOut>()) {
    const int full = PivotLayout<kFanOut>::FullLevels(size);
    for (int levels = 0; levels <= full + 1; ++levels) {
      const PivotLayout<kFanOut> layout(size, levels);
      BOOST_REQUIRE(layout.levels() == std::min(levels, full));
      check(layout);
    }
  }
}

template <int kFanOut>
void LevelsShrinkToOneRoot() {
  ForEachLayout<kFanOut>([](const PivotLayout<kFanOut>& layout) {
    uint64_t below = layout.partitions();
    size_t slots = 0;
    for (int level = layout.levels() - 1; level >= 0; --level) {
      BOOST_REQUIRE(layout.nodes(level) == (below + kFanOut - 1) / kFanOut);
      below = layout.nodes(level);
      slots += below * layout.kNodeKeys;
    }
    if (layout.entries() > 0) BOOST_REQUIRE(below == 1);
    BOOST_REQUIRE(layout.slots() == slots);
  });
}

// A descent over the keys 0, 2, 4, ... ends in the partition of the lower bound.
template <int kFanOut>
void DescentsEndInAPartitionThatIsThere() {
  ForEachLayout<kFanOut>([](const PivotLayout<kFanOut>& layout) {
    const uint64_t size = layout.entries();
    const uint64_t step = std::max<uint64_t>(1, size / 100);
    for (uint64_t query = 0; query <= 2 * size && size > 0; query += step) {
      uint64_t node = 0;
      for (int level = 0; level < layout.levels(); ++level) {
        uint64_t less = 0;
        for (uint64_t i = 0; i < layout.kNodeKeys; ++i) {
          const uint64_t entry =
              layout.EntryOfSlot((layout.first_node(level) + node) * layout.kNodeKeys + i);
          less += entry < size && 2 * entry < query;
        }
        node = node * kFanOut + less;
        BOOST_REQUIRE(level + 1 == layout.levels() || node < layout.nodes(level + 1));
      }
      BOOST_REQUIRE(node < layout.partitions());
      const uint64_t rank = (query + 1) / 2;
      BOOST_REQUIRE(node * layout.partition_entries() <= rank);
      BOOST_REQUIRE(rank <= (node + 1) * layout.partition_entries());
    }
  });
}

BOOST_AUTO_TEST_CASE(levels_shrink_to_one_root) {
  LevelsShrinkToOneRoot<2>();
  LevelsShrinkToOneRoot<3>();
  LevelsShrinkToOneRoot<9>();
  LevelsShrinkToOneRoot<17>();
  LevelsShrinkToOneRoot<33>();
}

BOOST_AUTO_TEST_CASE(descents_end_in_a_partition_that_is_there) {
  DescentsEndInAPartitionThatIsThere<2>();
  DescentsEndInAPartitionThatIsThere<3>();
  DescentsEndInAPartitionThatIsThere<9>();
  DescentsEndInAPartitionThatIsThere<17>();
  DescentsEndInAPartitionThatIsThere<33>();
}

BOOST_AUTO_TEST_CASE(the_papers_example_has_its_pivots) {
  // Figure 8: K = 3, 14 entries. The last key of all, at 13, is no pivot.
  const PivotLayout<3> layout(14, 32);
  BOOST_TEST(layout.levels() == 2);
  const std::vector<uint64_t> expected = {5, 11, 1, 3, 7, 9, 14, 14};
  std::vector<uint64_t> entries;
  for (uint64_t slot = 0; slot < layout.slots(); ++slot) {
    entries.push_back(layout.EntryOfSlot(slot));
  }
  BOOST_TEST(entries == expected);
}

BOOST_AUTO_TEST_CASE(the_largest_run_fits) {
  const PivotLayout<2> binary(kMaxEntries, PivotLayout<2>::kMaxLevels);
  BOOST_TEST(binary.levels() == 32);
  BOOST_TEST(binary.EntryOfSlot(0) == (uint64_t{1} << 31) - 1);
  const PivotLayout<17> wide(kMaxEntries, PivotLayout<17>::kMaxLevels);
  BOOST_TEST(wide.levels() == 7);
  BOOST_TEST(wide.slots() < kMaxEntries / 15);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
