#include "gpu/layout/eytzinger_layout.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cairn/types.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(eytzinger_layout_test)
namespace {

static_assert(EytzingerLayout<2>(7).levels() == 3);
static_assert(EytzingerLayout<3>(14).leaf_entries() == 6);
static_assert(EytzingerLayout<9>(1 << 16).slots() == 1 << 16);

// Sizes around those of full trees, and all small ones.
template <int kFanOut>
std::vector<uint64_t> Sizes() {
  std::vector<uint64_t> sizes(200);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (uint64_t full = 1; full < 300000; full *= kFanOut) {
    for (uint64_t size : {full - 1, full, full + 1, 2 * full, full + full / 2}) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

// The textbook's recursion: ranks in the order of slots. `next` counts entries that were placed.
template <int kFanOut>
void Place(uint64_t node, uint64_t entries, uint32_t* next, std::vector<uint32_t>* rank_of_slot) {
  const uint64_t first = node * (kFanOut - 1);
  if (first >= entries) return;
  for (uint64_t child = 0; child < kFanOut; ++child) {
    Place<kFanOut>(node * kFanOut + 1 + child, entries, next, rank_of_slot);
    if (child + 1 < kFanOut && first + child < entries) (*rank_of_slot)[first + child] = (*next)++;
  }
}

template <int kFanOut>
void FormulasGiveTheTreeOfTheRecursion() {
  for (uint64_t size : Sizes<kFanOut>()) {
    const EytzingerLayout<kFanOut> layout(size);
    std::vector<uint32_t> rank_of_slot(size);
    uint32_t next = 0;
    Place<kFanOut>(0, size, &next, &rank_of_slot);
    BOOST_REQUIRE(next == size);
    for (uint32_t slot = 0; slot < size; ++slot) {
      const uint32_t rank = layout.RankOfSlot(slot);
      BOOST_REQUIRE_MESSAGE(rank == rank_of_slot[slot],
                            "K " << kFanOut << ", size " << size << ", slot " << slot);
      BOOST_REQUIRE_MESSAGE(layout.SlotOfRank(rank) == slot,
                            "K " << kFanOut << ", size " << size << ", rank " << rank);
    }
  }
}

// A descent by RankOfLeaf, over the keys 0, 2, 4, ... in the order of slots.
template <int kFanOut>
void DescentsEndAtTheRank() {
  for (uint64_t size : Sizes<kFanOut>()) {
    const EytzingerLayout<kFanOut> layout(size);
    const uint64_t step = std::max<uint64_t>(1, size / 500);
    for (uint64_t query = 0; query <= 2 * size; query += step) {
      uint32_t start = 0, node = 0;
      const auto less = [&] {
        uint32_t count = 0;
        const uint64_t first = start + uint64_t{node} * layout.kNodeEntries;
        for (uint64_t slot = first; slot < std::min(first + layout.kNodeEntries, size); ++slot) {
          count += 2 * uint64_t{layout.RankOfSlot(static_cast<uint32_t>(slot))} < query;
        }
        return count;
      };
      for (int level = 0; level < layout.levels(); ++level, start = layout.Next(start)) {
        node = node * kFanOut + less();
      }
      BOOST_REQUIRE(layout.RankOfLeaf(node, less()) == (query + 1) / 2);
    }
  }
}

template <int kFanOut>
void TheLargestRunFits() {
  for (uint64_t size : {kMaxEntries, kMaxEntries - 1, uint64_t{1} << 31, (uint64_t{1} << 31) - 1}) {
    const EytzingerLayout<kFanOut> layout(size);
    BOOST_TEST(uint64_t{layout.inner_entries()} + layout.leaf_entries() == size);
    const uint32_t last = static_cast<uint32_t>(size - 1);
    for (uint32_t at : {uint32_t{0}, uint32_t{1}, last / 3, last / 2, last - 1, last}) {
      BOOST_TEST(layout.RankOfSlot(layout.SlotOfRank(at)) == at);
      BOOST_TEST(layout.SlotOfRank(layout.RankOfSlot(at)) == at);
    }
  }
}

BOOST_AUTO_TEST_CASE(formulas_give_the_tree_of_the_recursion) {
  FormulasGiveTheTreeOfTheRecursion<2>();
  FormulasGiveTheTreeOfTheRecursion<3>();
  FormulasGiveTheTreeOfTheRecursion<4>();
  FormulasGiveTheTreeOfTheRecursion<9>();
  FormulasGiveTheTreeOfTheRecursion<17>();
  FormulasGiveTheTreeOfTheRecursion<33>();
}

BOOST_AUTO_TEST_CASE(the_papers_example_has_its_ranks) {
  // Figure 10: K = 3, 14 entries, 6 of them in the leaf level.
  const EytzingerLayout<3> layout(14);
  std::vector<uint32_t> ranks;
  for (uint32_t slot = 0; slot < 14; ++slot) ranks.push_back(layout.RankOfSlot(slot));
  const std::vector<uint32_t> expected = {8, 11, 2, 5, 9, 10, 12, 13, 0, 1, 3, 4, 6, 7};
  BOOST_TEST(ranks == expected);
}

BOOST_AUTO_TEST_CASE(descents_end_at_the_rank) {
  DescentsEndAtTheRank<2>();
  DescentsEndAtTheRank<3>();
  DescentsEndAtTheRank<9>();
  DescentsEndAtTheRank<33>();
}

BOOST_AUTO_TEST_CASE(the_largest_run_fits) {
  TheLargestRunFits<2>();
  TheLargestRunFits<3>();
  TheLargestRunFits<9>();
  TheLargestRunFits<17>();
  TheLargestRunFits<33>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
