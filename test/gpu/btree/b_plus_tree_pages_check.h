#pragma once

#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gpu/btree/b_plus_tree.h"

namespace cairn::gpu {

template <typename T>
std::vector<T> ReadBuffer(const DeviceBuffer<T>& buffer) {
  std::vector<T> values(buffer.size());
  BOOST_REQUIRE(cudaMemcpy(values.data(), buffer.data(), buffer.bytes(), cudaMemcpyDeviceToHost) ==
                cudaSuccess);
  return values;
}

// Reads a tree's pages back, checks their invariants, and returns the entries, in order.
template <typename Key>
class PagesCheck {
 public:
  using Entry = std::pair<Key, RowId>;

  explicit PagesCheck(const BPlusTreePages<Key>& pages)
      : layout_(pages.layout),
        order_(static_cast<uint32_t>(pages.layout.order())),
        inner_(ReadBuffer(pages.inner)),
        leaves_(ReadBuffer(pages.leaves)) {
    if (!pages.links) {
      CheckPacked(layout_.levels() - 1, 0);
      BOOST_TEST(leaves_seen_ == layout_.leaves());
      BOOST_TEST(inner_seen_ == layout_.inner_pages());
    } else {
      CheckLinked(*pages.links);
    }
    BOOST_TEST(entries_.size() == pages.entries());
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Key LeafKey(uint32_t leaf, uint32_t slot) const {
    return leaves_[leaf * LeafStride<Key>(layout_.order()) + slot];
  }
  RowId LeafRow(uint32_t leaf, uint32_t slot) const {
    const Key* const keys = &leaves_[leaf * LeafStride<Key>(layout_.order())];
    return reinterpret_cast<const RowId*>(keys + order_)[slot];
  }

  void TakeLeaf(uint32_t leaf, uint32_t size, bool root) {
    ++leaves_seen_;
    BOOST_REQUIRE(size <= order_);
    BOOST_REQUIRE(root || size >= order_ / 2);
    for (uint32_t slot = 0; slot < order_; ++slot) {
      if (slot < size) {
        const Entry entry(LeafKey(leaf, slot), LeafRow(leaf, slot));
        BOOST_REQUIRE(entries_.empty() || entries_.back() <= entry);
        entries_.push_back(entry);
      } else {
        BOOST_REQUIRE(LeafKey(leaf, slot) == std::numeric_limits<Key>::max());
        BOOST_REQUIRE(LeafRow(leaf, slot) == kNoRow);
      }
    }
  }
  // Separator `slot` of an inner page of `size`, when its left child has been taken.
  void CheckSeparator(uint32_t page, uint32_t slot, uint32_t size) const {
    const Key separator = inner_[size_t{page} * order_ + slot];
    BOOST_REQUIRE(separator ==
                  (slot < size ? entries_.back().first : std::numeric_limits<Key>::max()));
  }
  void CheckInnerSize(uint32_t size, bool root) {
    ++inner_seen_;
    BOOST_REQUIRE(size <= order_);
    BOOST_REQUIRE(size >= (root ? 1 : order_ / 2));
  }

  void CheckPacked(int level, uint32_t page) {
    const bool root = level == layout_.levels() - 1;
    const BPlusTreeLevel& pages = layout_.level(level);
    if (level == 0) return TakeLeaf(page, pages.size(page), root);
    const uint32_t size = layout_.separators(level, page);
    CheckInnerSize(size, root);
    for (uint32_t slot = 0; slot <= order_; ++slot) {
      if (slot <= size) CheckPacked(level - 1, pages.first(page) + slot);
      if (slot < order_) CheckSeparator(layout_.first_page(level) + page, slot, size);
    }
  }

  void CheckLinked(const BPlusTreeLinks& links) {
    shape_ = links.shape;
    inner_rows_ = ReadBuffer(links.inner_rows);
    children_ = ReadBuffer(links.children);
    inner_sizes_ = ReadBuffer(links.inner_sizes);
    leaf_sizes_ = ReadBuffer(links.leaf_sizes);
    next_leaf_ = ReadBuffer(links.next_leaf);
    first_positions_ = ReadBuffer(links.first_positions);
    leaf_at_ = ReadBuffer(links.leaf_at);
    ordinal_at_ = ReadBuffer(links.ordinal_at);
    CheckLinkedPage(shape_.levels - 1, shape_.root);
    BOOST_TEST(leaves_seen_ == shape_.pages[0]);
    BOOST_TEST(inner_seen_ == shape_.inner_pages);
    for (int level = 0; level < BPlusTreeLayout::kMaxLevels; ++level) {
      BOOST_TEST(shape_.pages[level] == pages_seen_[level]);
    }
    BOOST_TEST(next_of_last_ == kNoLeaf);
    BOOST_TEST(links.inner_room >= shape_.inner_pages);
    BOOST_TEST(links.leaf_room >= shape_.pages[0]);
  }

  void CheckLinkedPage(int level, uint32_t page) {
    const bool root = level == shape_.levels - 1;
    ++pages_seen_[level];
    if (level == 0) return CheckLinkedLeaf(page, root);
    const uint32_t size = inner_sizes_[page];
    CheckInnerSize(size, root);
    for (uint32_t slot = 0; slot <= order_; ++slot) {
      if (slot <= size) CheckLinkedPage(level - 1, children_[size_t{page} * (order_ + 1) + slot]);
      if (slot >= order_) continue;
      CheckSeparator(page, slot, size);
      BOOST_REQUIRE(inner_rows_[size_t{page} * order_ + slot] ==
                    (slot < size ? entries_.back().second : kNoRow));
    }
  }

  void CheckLinkedLeaf(uint32_t leaf, bool root) {
    BOOST_REQUIRE(leaves_seen_ == 0 || next_of_last_ == leaf);
    next_of_last_ = next_leaf_[leaf];
    BOOST_REQUIRE(first_positions_[leaf] == entries_.size());
    BOOST_REQUIRE(leaf_at_[leaves_seen_] == leaf);
    for (size_t position = entries_.size(); position < entries_.size() + leaf_sizes_[leaf];
         ++position) {
      if (position % order_ == 0) BOOST_REQUIRE(ordinal_at_[position / order_] == leaves_seen_);
    }
    TakeLeaf(leaf, leaf_sizes_[leaf], root);
  }

  BPlusTreeLayout layout_;
  uint32_t order_;
  std::vector<Key> inner_, leaves_;
  BPlusTreeShape shape_;
  std::vector<RowId> inner_rows_;
  std::vector<uint32_t> children_, inner_sizes_, leaf_sizes_, next_leaf_;
  std::vector<uint32_t> first_positions_, leaf_at_, ordinal_at_;
  uint32_t leaves_seen_ = 0, inner_seen_ = 0, next_of_last_ = kNoLeaf;
  uint32_t pages_seen_[BPlusTreeLayout::kMaxLevels] = {};
  std::vector<Entry> entries_;
};

}  // namespace cairn::gpu
