#include "index/layout/tree_layout.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "cairn/types.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(tree_layout_test, *StartsNoThread())
namespace {

constexpr PageBlocking kPages[] = {PageBlocking::kNone, PageBlocking::k4K, PageBlocking::k2M};

// Layouts are arithmetic that the compiler can do.
static_assert(TreeLayout<uint32_t>(1 << 16, PageBlocking::kNone).levels() == 3);
static_assert(TreeLayout<uint64_t>(1 << 24, PageBlocking::k4K).levels() == 7);
static_assert(TreeLayout<uint32_t>::BlockLevels(PageBlocking::k4K) == 2);
static_assert(TreeLayout<uint32_t>::BlockLevels(PageBlocking::k2M) == 4);
static_assert(TreeLayout<uint64_t>::BlockLevels(PageBlocking::k4K) == 2);
static_assert(TreeLayout<uint64_t>::BlockLevels(PageBlocking::k2M) == 5);

template <typename Key>
std::vector<uint64_t> Sizes() {
  std::vector<uint64_t> sizes = {0, 1, 2, 1000, 12345, 300001};
  for (uint64_t power = TreeLayout<Key>::kLineKeys; power < 3000000; power *= 8) {
    for (uint64_t size : {power - 1, power, power + 1}) sizes.push_back(size);
  }
  return sizes;
}

template <typename Key>
void EachNodeHasALineOfItsOwn() {
  for (PageBlocking page : kPages) {
    for (uint64_t size : Sizes<Key>()) {
      const TreeLayout<Key> layout(size, page);
      std::vector<bool> taken(layout.lines());
      for (int level = 0; level < layout.levels(); ++level) {
        for (size_t node = 0; node < layout.nodes(level); ++node) {
          const size_t line = layout.Line(level, node);
          BOOST_REQUIRE(line < layout.lines());
          BOOST_REQUIRE(!taken[line]);
          taken[line] = true;
        }
      }
    }
  }
}

template <typename Key>
void LevelsShrinkToOneRoot() {
  for (uint64_t size : Sizes<Key>()) {
    const TreeLayout<Key> layout(size, PageBlocking::kNone);
    BOOST_TEST(layout.leaves() * layout.kLineKeys >= size);
    BOOST_TEST((layout.levels() == 0) == (layout.leaves() <= 1));
    for (int level = 0; level < layout.levels(); ++level) {
      const size_t below = level + 1 < layout.levels() ? layout.nodes(level + 1) : layout.leaves();
      BOOST_TEST(layout.nodes(level) == (below + layout.kFanOut - 1) / layout.kFanOut);
    }
    if (layout.levels() > 0) BOOST_TEST(layout.nodes(0) == 1u);
  }
}

// A separator is the last entry below its child: followed down the rightmost way, to a leaf.
template <typename Key>
void SeparatorsAreTheLastEntriesOfChildren() {
  for (uint64_t size : Sizes<Key>()) {
    const TreeLayout<Key> layout(size, PageBlocking::kNone);
    for (int level = 0; level < layout.levels(); ++level) {
      for (size_t node = 0; node < layout.nodes(level); ++node) {
        for (size_t slot = 0; slot < layout.kFanOut; ++slot) {
          uint64_t child = node * layout.kFanOut + slot;
          const uint64_t children =
              level + 1 < layout.levels() ? layout.nodes(level + 1) : layout.leaves();
          uint64_t expected = size;  // padding: the last child, and slots that have none
          if (slot + 1 < layout.kFanOut && child + 1 < children) {
            for (int l = level + 1; l < layout.levels(); ++l) {
              child = child * layout.kFanOut + layout.kFanOut - 1;
            }
            expected = child * layout.kLineKeys + layout.kLineKeys - 1;
          }
          BOOST_REQUIRE(layout.SeparatorEntry(level, node, slot) == expected);
        }
      }
    }
  }
}

// No node of a full block is on another page than the block's root.
template <typename Key>
void BlocksDoNotStraddlePages() {
  for (PageBlocking page : {PageBlocking::k4K, PageBlocking::k2M}) {
    const size_t page_lines = PageBytes(page) / 64;
    const int depth = TreeLayout<Key>::BlockLevels(page);
    const TreeLayout<Key> layout(5000000, page);
    for (int level = 0; level < layout.levels(); ++level) {
      const int from_leaves = layout.levels() - 1 - level;
      if (from_leaves % depth == depth - 1) continue;  // the root of a block
      if (level == 0) continue;
      for (size_t node = 0; node < layout.nodes(level); ++node) {
        BOOST_REQUIRE(layout.Line(level, node) / page_lines ==
                      layout.Line(level - 1, node / layout.kFanOut) / page_lines);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_node_has_a_line_of_its_own) {
  EachNodeHasALineOfItsOwn<uint32_t>();
  EachNodeHasALineOfItsOwn<uint64_t>();
}

BOOST_AUTO_TEST_CASE(levels_shrink_to_one_root) {
  LevelsShrinkToOneRoot<uint32_t>();
  LevelsShrinkToOneRoot<uint64_t>();
}

BOOST_AUTO_TEST_CASE(separators_are_the_last_entries_of_children) {
  SeparatorsAreTheLastEntriesOfChildren<uint32_t>();
  SeparatorsAreTheLastEntriesOfChildren<uint64_t>();
}

BOOST_AUTO_TEST_CASE(blocks_do_not_straddle_pages) {
  BlocksDoNotStraddlePages<uint32_t>();
  BlocksDoNotStraddlePages<uint64_t>();
}

BOOST_AUTO_TEST_CASE(the_largest_run_fits_and_its_tree_is_small) {
  for (PageBlocking page : kPages) {
    const TreeLayout<uint32_t> u32(kMaxEntries, page);
    BOOST_TEST(u32.levels() == TreeLayout<uint32_t>::kMaxLevels);
    BOOST_TEST(static_cast<double>(u32.lines()) * 64 < 0.10 * 8 * static_cast<double>(kMaxEntries));
    const TreeLayout<uint64_t> u64(kMaxEntries, page);
    BOOST_TEST(u64.levels() <= TreeLayout<uint64_t>::kMaxLevels);
    if (page == PageBlocking::kNone) {
      BOOST_TEST(static_cast<double>(u64.lines()) * 64 <
                 0.10 * 12 * static_cast<double>(kMaxEntries));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
