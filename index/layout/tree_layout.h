#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// The blocking of a TreeLayout's inner nodes for memory pages.
enum class PageBlocking : uint8_t {
  kNone,  // level order: each level's nodes one after the other
  k4K,    // subtrees with all whole levels that fit share a 4 KiB page
  k2M,    // the same with a page of 2 MiB
};

// The bytes of a page, 0 for kNone.
constexpr size_t PageBytes(PageBlocking page) {
  return page == PageBlocking::k4K   ? size_t{4} << 10
         : page == PageBlocking::k2M ? size_t{2} << 20
                                     : 0;
}

// The positions in a static search tree over a sorted column, whose 64-byte lines are the leaves.
// Only arithmetic: no memory.
//
// A node is also one line. It has kLineKeys children, and kLineKeys - 1 separators; the last slot
// is padding. Separator s of a node is the last key of child s, so that the child to visit for the
// lower bound of q is the number of separators below q. From the last child of the tree's right
// edge on, separators are padding, greater than or equal to every key, so every search ends in an
// existing line.
//
// Levels count from the root, 0. Hierarchical blocking is that of Kim et al., FAST (SIGMOD 2010),
// section 4.2, with two deviations. A line is in key order and compared as a whole, since a SIMD
// register holds it, or most of it. Page blocks are formed from the leaves up: the root's block is
// the shallow one, and of the others only the last of a level may be partly empty.
template <typename Key>
class TreeLayout {
 public:
  static constexpr size_t kLineKeys = 64 / sizeof(Key);
  static constexpr int kFanOutBits = sizeof(Key) == 4 ? 4 : 3;
  static constexpr size_t kFanOut = size_t{1} << kFanOutBits;
  static_assert(kFanOut == kLineKeys);
  // Enough for kMaxEntries.
  static constexpr int kMaxLevels = sizeof(Key) == 4 ? 7 : 10;

  // The tree over `entries` keys, at most kMaxEntries.
  constexpr TreeLayout(uint64_t entries, PageBlocking page);
  constexpr TreeLayout() : TreeLayout(0, PageBlocking::kNone) {}

  constexpr uint64_t entries() const { return entries_; }
  constexpr PageBlocking page() const { return page_; }
  // Lines of keys; the last may be partly filled.
  constexpr size_t leaves() const { return (entries_ + kLineKeys - 1) / kLineKeys; }
  // Levels of inner nodes: 0 if there is at most one leaf.
  constexpr int levels() const { return levels_; }
  // Nodes of a level; requires level < levels().
  constexpr size_t nodes(int level) const { return nodes_[level]; }
  // Lines that all inner nodes take, from a multiple of the page size on.
  constexpr size_t lines() const { return lines_; }

  // The line of node `node` of `level`. kPage must be page(): it is a template argument so that
  // a search computes with constants.
  template <PageBlocking kPage>
  constexpr size_t Line(int level, size_t node) const;
  // The same, for callers that are not time-critical.
  constexpr size_t Line(int level, size_t node) const;

  // The entry whose key is separator `slot` of a node, or entries() if it is padding.
  constexpr uint64_t SeparatorEntry(int level, size_t node, size_t slot) const {
    if (slot + 1 >= kFanOut) return entries_;
    const uint64_t child = (uint64_t{node} << kFanOutBits) + slot;
    const uint64_t behind = (child + 1) << (kFanOutBits * (levels_ - level));
    return behind < entries_ ? behind - 1 : entries_;
  }

  // Levels of a full page block, its lines, and how many of them share a page.
  static constexpr int BlockLevels(PageBlocking page);
  static constexpr size_t BlockLines(PageBlocking page) { return FirstLineOf(BlockLevels(page)); }
  static constexpr size_t BlocksPerPage(PageBlocking page) {
    return PageBytes(page) / 64 / BlockLines(page);
  }

 private:
  // Lines of the levels above level i of a block.
  static constexpr size_t FirstLineOf(int i) {
    return ((size_t{1} << (kFanOutBits * i)) - 1) / (kFanOut - 1);
  }

  uint64_t entries_;
  PageBlocking page_;
  int levels_ = 0;
  size_t lines_ = 0;
  size_t nodes_[kMaxLevels] = {};
  // The line of a level's first node (level order), or of the first block that the level is in.
  size_t first_[kMaxLevels] = {};
  int level_in_block_[kMaxLevels] = {};
};

template <typename Key>
constexpr int TreeLayout<Key>::BlockLevels(PageBlocking page) {
  int levels = 1;
  while (FirstLineOf(levels + 1) <= PageBytes(page) / 64) ++levels;
  return levels;
}

template <typename Key>
constexpr TreeLayout<Key>::TreeLayout(uint64_t entries, PageBlocking page)
    : entries_(entries), page_(page) {
  size_t sizes[kMaxLevels] = {};  // from the leaves up
  for (size_t below = leaves(); below > 1; below = sizes[levels_++]) {
    sizes[levels_] = (below + kFanOut - 1) >> kFanOutBits;
  }
  for (int level = 0; level < levels_; ++level) nodes_[level] = sizes[levels_ - 1 - level];
  if (page == PageBlocking::kNone) {
    for (int level = 0; level < levels_; ++level) {
      first_[level] = lines_;
      lines_ += nodes_[level];
    }
    return;
  }
  const size_t page_lines = PageBytes(page) / 64;
  for (int bottom = levels_; bottom > 0;) {
    const int depth = bottom < BlockLevels(page) ? bottom : BlockLevels(page);
    const int top = bottom - depth;
    // The root's block, the only one of its level, may share a page with others.
    const size_t fits = top == 0 ? FirstLineOf(depth) : page_lines;
    if (lines_ % page_lines + fits > page_lines) lines_ += page_lines - lines_ % page_lines;
    for (int i = 0; i < depth; ++i) {
      first_[top + i] = lines_;
      level_in_block_[top + i] = i;
    }
    lines_ = Line(bottom - 1, nodes_[bottom - 1] - 1) + 1;
    bottom = top;
  }
}

template <typename Key>
template <PageBlocking kPage>
constexpr size_t TreeLayout<Key>::Line(int level, size_t node) const {
  if constexpr (kPage == PageBlocking::kNone) {
    return first_[level] + node;
  } else {
    constexpr size_t kBlocksPerPage = BlocksPerPage(kPage);
    const int bits = kFanOutBits * level_in_block_[level];
    const size_t block = node >> bits;
    const size_t in_level = node & ((size_t{1} << bits) - 1);
    return first_[level] + block / kBlocksPerPage * (PageBytes(kPage) / 64) +
           block % kBlocksPerPage * BlockLines(kPage) + FirstLineOf(level_in_block_[level]) +
           in_level;
  }
}

template <typename Key>
constexpr size_t TreeLayout<Key>::Line(int level, size_t node) const {
  switch (page_) {
    case PageBlocking::k4K:
      return Line<PageBlocking::k4K>(level, node);
    case PageBlocking::k2M:
      return Line<PageBlocking::k2M>(level, node);
    case PageBlocking::kNone:
      break;
  }
  return Line<PageBlocking::kNone>(level, node);
}

}  // namespace cairn
