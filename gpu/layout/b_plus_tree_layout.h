#pragma once

#include <cstdint>

#include "cairn/types.h"

namespace cairn {

// The number of items per page on one level of a bulk-created B+-tree: entries in leaves, children
// in inner pages. All pages have `fill` items, except the two rightmost. These are adjusted so that
// no page is less than half full (Kaczmarek, B+-Tree Optimized for GPGPU, section 2.2): the
// remaining items join the last full page if they fit; otherwise the two pages share their items
// evenly.
class BPlusTreeLevel {
 public:
  constexpr BPlusTreeLevel() = default;
  // `items` items in pages of `fill`. A page has at most `capacity` items, and at least `least` if
  // there are several pages. Requires 1 <= least <= fill <= capacity and capacity + 1 >= 2 * least.
  constexpr BPlusTreeLevel(uint32_t items, uint32_t fill, uint32_t least, uint32_t capacity)
      : items_(items), fill_(fill), reciprocal_(UINT32_MAX / fill) {
    const uint32_t full = items / fill, rest = items % fill;
    pages_ = full + (rest > 0 ? 1 : 0);
    if (pages_ == 0) pages_ = 1;
    last_first_ = (pages_ - 1) * fill;
    if (pages_ == 1 || rest == 0 || rest >= least) return;
    if (fill + rest <= capacity) {
      --pages_;
      last_first_ -= fill;
    } else {
      last_first_ = items - (fill + rest) / 2;
    }
  }

  constexpr uint32_t items() const { return items_; }
  // At least one page, which is empty if there are no items.
  constexpr uint32_t pages() const { return pages_; }
  // The first item of a page, and its number of items.
  constexpr uint32_t first(uint32_t page) const {
    const uint32_t unless_last = page * fill_, last = last_first_;
    return unless_last < last ? unless_last : last;
  }
  constexpr uint32_t size(uint32_t page) const {
    return (page + 1 == pages_ ? items_ : first(page + 1)) - first(page);
  }
  // The page of an item. Avoids a division, which is slow on GPUs: multiplying by the reciprocal
  // gives a quotient that is too small by at most one.
  constexpr uint32_t page_of(uint32_t item) const {
    uint32_t page = static_cast<uint32_t>(uint64_t{item} * reciprocal_ >> 32);
    page += item - page * fill_ >= fill_ ? 1 : 0;
    return item >= last_first_ ? pages_ - 1 : page;
  }

 private:
  uint32_t items_ = 0;
  uint32_t fill_ = 1;
  uint32_t reciprocal_ = 0;  // 2^32 / fill, or up to 1 less
  uint32_t pages_ = 1;
  uint32_t last_first_ = 0;  // first item of the last page
};

// The layout of a B+-tree that was created in bulk over a sorted run. Arithmetic only: no memory. A
// page on any level can be filled without reading another page, so all levels are created at once.
//
// A page of order p has up to p keys: entries in a leaf; in an inner page separators, and one more
// child. Separator s is the maximum key below child s. Therefore the child to visit for the lower
// bound of q is the number of separators less than q, also with duplicates. It contains that lower
// bound unless q is greater than all keys. The children of a page are consecutive pages, so no
// pointers are needed.
//
// Levels are numbered from the leaves (0) upward. Inner pages are numbered level by level from the
// root (0).
class BPlusTreeLayout {
 public:
  static constexpr int kMinOrder = 8;
  static constexpr int kGreatestOrder = 64;
  // Enough for kMaxEntries entries in half-full pages of the minimum order.
  static constexpr int kMaxLevels = 14;

  // Orders are powers of two, so that pages are aligned to the vectors in which they are read.
  static constexpr bool IsOrder(int order) {
    return order >= kMinOrder && order <= kGreatestOrder && (order & (order - 1)) == 0;
  }

  // The tree over `entries` entries, at most kMaxEntries, of order `order` (IsOrder), with `fill`
  // keys per page, from order / 2 to order.
  constexpr BPlusTreeLayout(uint64_t entries, int order, int fill)
      : BPlusTreeLayout(
            BPlusTreeLevel(static_cast<uint32_t>(entries), static_cast<uint32_t>(fill),
                           static_cast<uint32_t>(order) / 2, static_cast<uint32_t>(order)),
            order, fill) {}
  // The inner pages above leaves of any size; leaves take the place of entries, so SeparatorEntry
  // returns the number of a leaf.
  static constexpr BPlusTreeLayout AboveLeaves(uint32_t leaves, int order, int fill) {
    return {BPlusTreeLevel(leaves, 1, 1, 1), order, fill};
  }
  constexpr BPlusTreeLayout() : BPlusTreeLayout(0, 16, 16) {}

  constexpr int order() const { return order_; }
  constexpr int fill() const { return fill_; }
  constexpr uint32_t entries() const { return level_[0].items(); }
  // Including the leaf level: at least 1.
  constexpr int levels() const { return levels_; }
  constexpr const BPlusTreeLevel& level(int level) const { return level_[level]; }
  constexpr uint32_t leaves() const { return level_[0].pages(); }
  constexpr uint32_t inner_pages() const { return inner_pages_; }
  // The number of the first page of an inner level.
  constexpr uint32_t first_page(int level) const { return first_page_[level]; }

  // The level of an inner page, given its number among all inner pages.
  constexpr int level_of(uint32_t number) const {
    int level = levels_ - 1;
    while (level > 1 && number >= first_page_[level - 1]) --level;
    return level;
  }

  // The number of separators of an inner page, which is numbered within its level.
  constexpr uint32_t separators(int level, uint32_t page) const {
    return level_[level].size(page) - 1;
  }
  // The entry whose key is separator `slot` of the page: the last entry below child `slot`, which
  // must exist and must not be the last child.
  constexpr uint32_t SeparatorEntry(int level, uint32_t page, uint32_t slot) const {
    uint32_t item = level_[level].first(page) + slot;
    for (int below = level - 1; below >= 0; --below) {
      item = level_[below].first(item) + level_[below].size(item) - 1;
    }
    return item;
  }

  // The number of additional inner pages that is always enough for inserting `inserts` entries one
  // by one into a tree with pages[level] pages per level. An insert splits at most one leaf. An
  // inner page may split at its first new child, but each half splits again only after order / 2 +
  // 1 more. New roots are included.
  static constexpr uint64_t SpareInnerPages(int order, const uint32_t (&pages)[kMaxLevels],
                                            uint64_t inserts) {
    const uint64_t half = static_cast<uint64_t>(order) / 2 + 1;
    uint64_t spare = kMaxLevels, splits = inserts;
    for (int level = 1; level < kMaxLevels; ++level) {
      const uint64_t most = pages[level] + splits / half;
      splits = splits < most ? splits : most;
      spare += splits;
    }
    return spare;
  }

 private:
  constexpr BPlusTreeLayout(BPlusTreeLevel leaves, int order, int fill)
      : order_(order), fill_(fill) {
    const auto p = static_cast<uint32_t>(order), f = static_cast<uint32_t>(fill);
    level_[0] = leaves;
    levels_ = 1;
    while (level_[levels_ - 1].pages() > 1) {
      level_[levels_] = BPlusTreeLevel(level_[levels_ - 1].pages(), f + 1, p / 2 + 1, p + 1);
      ++levels_;
    }
    for (int level = levels_ - 1; level > 0; --level) {
      first_page_[level] = inner_pages_;
      inner_pages_ += level_[level].pages();
    }
  }

  int order_;
  int fill_;
  int levels_ = 0;
  uint32_t inner_pages_ = 0;
  BPlusTreeLevel level_[kMaxLevels];
  uint32_t first_page_[kMaxLevels] = {};
};

}  // namespace cairn
