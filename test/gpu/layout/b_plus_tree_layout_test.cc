#include "gpu/layout/b_plus_tree_layout.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "cairn/types.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(b_plus_tree_layout_test)
namespace {

// BOOST_REQUIRE for inner loops: it costs nothing while it holds.
#define REQUIRE(condition)                    \
  do {                                        \
    if (!(condition)) BOOST_FAIL(#condition); \
  } while (false)

constexpr int kOrders[] = {8, 16, 32, 64};

// Layouts are arithmetic that the compiler can do.
static_assert(BPlusTreeLayout(0, 16, 16).leaves() == 1);
static_assert(BPlusTreeLayout(17, 16, 16).leaves() == 2);
static_assert(BPlusTreeLayout(17, 16, 8).leaves() == 2);  // 8 and 9: the last two are joined
static_assert(BPlusTreeLayout(uint64_t{1} << 28, 16, 16).levels() == 7);
static_assert(BPlusTreeLayout::IsOrder(8) && !BPlusTreeLayout::IsOrder(24));

std::vector<int> Fills(int order) {
  return {order / 2, order / 2 + 1, order * 3 / 4, order};
}

// All sizes up to several levels, and some around the sizes of full trees.
std::vector<uint64_t> Sizes(int order, int fill) {
  std::vector<uint64_t> sizes;
  for (uint64_t size = 0; size < 3000; ++size) sizes.push_back(size);
  for (uint64_t full = uint64_t(fill) * (fill + 1); full < 4000000; full *= fill + 1) {
    for (uint64_t size = full - order - 1; size <= full + order + 1; ++size) sizes.push_back(size);
  }
  return sizes;
}

template <typename Check>
void ForEachLayout(Check check) {
  for (int order : kOrders) {
    for (int fill : Fills(order)) {
      for (uint64_t size : Sizes(order, fill)) check(BPlusTreeLayout(size, order, fill));
    }
  }
}

// Checks the pages of one level: from half full to full, unless there is only one, and `fill` items
// in all except the last two.
void CheckLevel(const BPlusTreeLevel& level, uint32_t fill, uint32_t least, uint32_t capacity) {
  const uint32_t pages = level.pages();
  REQUIRE(pages >= 1);
  if (pages == 1) {
    REQUIRE(level.first(0) == 0 && level.size(0) == level.items());
    REQUIRE(level.items() <= capacity);
    return;
  }
  // The pages before the last few are alike.
  const uint32_t from = pages > 8 ? pages - 8 : 0;
  for (uint32_t page = from; page < pages; ++page) {
    const uint32_t size = level.size(page);
    REQUIRE(size >= least && size <= capacity);
    if (page + 2 < pages) REQUIRE(size == fill);
    REQUIRE(level.first(page) + size == (page + 1 < pages ? level.first(page + 1) : level.items()));
    REQUIRE(level.page_of(level.first(page)) == page);
    REQUIRE(level.page_of(level.first(page) + size - 1) == page);
  }
  REQUIRE(from == 0 ? level.first(0) == 0 : level.first(from) == from * fill);
}

BOOST_AUTO_TEST_CASE(every_page_but_the_root_is_at_least_half_full) {
  ForEachLayout([](const BPlusTreeLayout& layout) {
    const uint32_t p = layout.order(), f = layout.fill();
    CheckLevel(layout.level(0), f, p / 2, p);
    for (int level = 1; level < layout.levels(); ++level) {
      REQUIRE(layout.level(level).items() == layout.level(level - 1).pages());
      CheckLevel(layout.level(level), f + 1, p / 2 + 1, p + 1);
      REQUIRE(layout.separators(level, layout.level(level).pages() - 1) >= 1u);
    }
    REQUIRE(layout.level(layout.levels() - 1).pages() == 1);
  });
}

BOOST_AUTO_TEST_CASE(every_item_is_on_the_page_that_holds_it) {
  for (uint32_t fill = 1; fill <= 65; ++fill) {
    const uint32_t greatest = UINT32_MAX - 1;
    const BPlusTreeLevel level(greatest, fill, fill, 2 * fill - 1);
    const auto check = [&](uint32_t item) {
      const uint32_t page = level.page_of(item);
      REQUIRE(item >= level.first(page) && item - level.first(page) < level.size(page));
    };
    for (uint32_t i = 0; i < 5000; ++i) check(i), check(greatest - 1 - i), check(i * 858993u);
    // 64-bit items, which do not wrap around after the last of almost 2^32 pages.
    for (uint64_t page = 1; page < level.pages(); page += level.pages() / 1000) {
      const auto first = static_cast<uint32_t>(page * fill);
      check(first - 1), check(first);
    }
  }
}

BOOST_AUTO_TEST_CASE(inner_pages_are_numbered_from_the_root_without_gaps) {
  ForEachLayout([](const BPlusTreeLayout& layout) {
    uint32_t next = 0;
    for (int level = layout.levels() - 1; level > 0; --level) {
      REQUIRE(layout.first_page(level) == next);
      next += layout.level(level).pages();
    }
    REQUIRE(layout.inner_pages() == next);
  });
}

// Every entry that ends a leaf, except the very last, is a separator after its leaf exactly once.
BOOST_AUTO_TEST_CASE(separators_are_the_last_entries_below_their_children) {
  for (int order : kOrders) {
    for (int fill : Fills(order)) {
      for (uint64_t size : {0, 1, 65, 1000, 12345, 100003}) {
        const BPlusTreeLayout layout(size, order, fill);
        std::vector<uint32_t> expected, found;
        for (uint32_t leaf = 0; leaf + 1 < layout.leaves(); ++leaf) {
          expected.push_back(layout.level(0).first(leaf + 1) - 1);
        }
        for (int level = 1; level < layout.levels(); ++level) {
          for (uint32_t page = 0; page < layout.level(level).pages(); ++page) {
            for (uint32_t slot = 0; slot < layout.separators(level, page); ++slot) {
              found.push_back(layout.SeparatorEntry(level, page, slot));
            }
          }
        }
        std::sort(found.begin(), found.end());
        REQUIRE(found == expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(pages_above_leaves_are_those_of_a_tree_with_as_many) {
  for (int order : kOrders) {
    for (uint32_t leaves : {1u, 2u, 9u, 10u, 1000u, 54321u}) {
      const BPlusTreeLayout above = BPlusTreeLayout::AboveLeaves(leaves, order, order);
      const BPlusTreeLayout full(uint64_t{leaves} * order, order, order);
      BOOST_TEST(above.leaves() == leaves);
      BOOST_TEST(above.levels() == full.levels());
      BOOST_TEST(above.inner_pages() == full.inner_pages());
      for (int level = 1; level < full.levels(); ++level) {
        for (uint32_t page = 0; page < full.level(level).pages(); ++page) {
          REQUIRE(above.level(level).first(page) == full.level(level).first(page));
          for (uint32_t slot = 0; slot < full.separators(level, page); ++slot) {
            REQUIRE((above.SeparatorEntry(level, page, slot) + 1) * order - 1 ==
                    full.SeparatorEntry(level, page, slot));
          }
        }
      }
    }
  }
}

// A search by entry number, like LowerBound with keys 0, 1, 2…
BOOST_AUTO_TEST_CASE(descent_by_separators_ends_in_the_leaf_of_the_entry) {
  for (int order : kOrders) {
    for (int fill : Fills(order)) {
      const BPlusTreeLayout layout(54321, order, fill);
      for (uint32_t entry = 0; entry < layout.entries(); entry += 7) {
        uint32_t page = 0;
        for (int level = layout.levels() - 1; level > 0; --level) {
          uint32_t rank = 0;
          while (rank < layout.separators(level, page) &&
                 layout.SeparatorEntry(level, page, rank) < entry) {
            ++rank;
          }
          page = layout.level(level).first(page) + rank;
        }
        REQUIRE(page == layout.level(0).page_of(entry));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_largest_run_fits) {
  for (int order : kOrders) {
    for (int fill : Fills(order)) {
      for (uint64_t less = 0; less < 200; ++less) {
        const BPlusTreeLayout layout(kMaxEntries - less, order, fill);
        BOOST_TEST(layout.levels() <= BPlusTreeLayout::kMaxLevels);
        CheckLevel(layout.level(0), fill, order / 2, order);
        for (int level = 1; level < layout.levels(); ++level) {
          CheckLevel(layout.level(level), fill + 1, order / 2 + 1, order + 1);
        }
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
