#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/layout/b_plus_tree_layout.h"

// B+-tree pages as kernels see them. There are two forms with one interface, so that searches,
// traversals and range copies are written once: packed pages, as created in bulk, where arithmetic
// tells children, sizes and positions; and linked pages, after single inserts, where arrays do.
//
// A page of level 1 and above is named by a number that its parent gives, a leaf by its place in
// memory. Ordinals count leaves in key order.
namespace cairn::gpu {

// What both forms have in common.
template <typename Key>
struct PageMemory {
  const Key* inner;  // page i at i * order: its separators, then the greatest key
  const Key*
      leaves;  // leaf i at i * LeafStride: keys, then row ids; empty places hold the greatest
  int order_bits;

  __device__ uint32_t order() const { return 1u << order_bits; }
  // Addresses; faster where the order is known at compile time, as kOrder.
  template <int kOrder = 0>
  __device__ const Key* Separators(uint32_t number) const {
    return inner + (kOrder > 0 ? size_t{number} * kOrder : size_t{number} << order_bits);
  }
  template <int kOrder = 0>
  __device__ const Key* Keys(uint32_t leaf) const {
    return leaves + size_t{leaf} * LeafStride<Key>(kOrder > 0 ? kOrder : 1 << order_bits);
  }
  template <int kOrder = 0>
  __device__ const RowId* Rows(uint32_t leaf) const {
    return reinterpret_cast<const RowId*>(Keys<kOrder>(leaf) +
                                          (kOrder > 0 ? kOrder : 1 << order_bits));
  }
};

template <typename Key>
struct PackedPages : PageMemory<Key> {
  BPlusTreeLayout layout;

  __device__ int levels() const { return layout.levels(); }
  __device__ uint32_t root() const { return 0; }
  // Of an inner page that its parent, or root(), names: its number among all.
  __device__ uint32_t Number(int level, uint32_t page) const {
    return layout.first_page(level) + page;
  }
  __device__ uint32_t Child(int level, uint32_t page, uint32_t slot) const {
    return layout.level(level).first(page) + slot;
  }

  __device__ uint32_t leaf_count() const { return layout.leaves(); }
  __device__ uint32_t LeafAt(uint32_t ordinal) const { return ordinal; }
  __device__ uint32_t NextLeaf(uint32_t leaf) const {
    return leaf + 1 < layout.leaves() ? leaf + 1 : kNoLeaf;
  }
  __device__ uint32_t LeafSize(uint32_t leaf) const { return layout.level(0).size(leaf); }
  __device__ Position FirstPosition(uint32_t leaf) const { return layout.level(0).first(leaf); }
  // The ordinal of the leaf that holds a position, which must be an entry's.
  __device__ uint32_t OrdinalOf(Position position) const {
    return layout.level(0).page_of(position);
  }
};

template <typename Key>
struct LinkedPages : PageMemory<Key> {
  BPlusTreeShape shape;
  const uint32_t* children;         // of inner page i from i * (order + 1) on
  const uint32_t* leaf_sizes;       // by leaf
  const uint32_t* next_leaf;        // by leaf: the next in key order
  const Position* first_positions;  // by leaf
  const uint32_t* leaf_at;          // by ordinal
  const uint32_t* ordinal_at;       // by position / order: of the leaf with position i * order

  __device__ int levels() const { return shape.levels; }
  __device__ uint32_t root() const { return shape.root; }
  __device__ uint32_t Number(int, uint32_t page) const { return page; }
  __device__ uint32_t Child(int, uint32_t page, uint32_t slot) const {
    return children[size_t{page} * (this->order() + 1) + slot];
  }

  __device__ uint32_t leaf_count() const { return shape.pages[0]; }
  __device__ uint32_t LeafAt(uint32_t ordinal) const { return leaf_at[ordinal]; }
  __device__ uint32_t NextLeaf(uint32_t leaf) const { return next_leaf[leaf]; }
  __device__ uint32_t LeafSize(uint32_t leaf) const { return leaf_sizes[leaf]; }
  __device__ Position FirstPosition(uint32_t leaf) const { return first_positions[leaf]; }
  // A leaf is half full at least, so it is one of a few.
  __device__ uint32_t OrdinalOf(Position position) const {
    uint32_t ordinal = ordinal_at[position >> this->order_bits];
    while (ordinal + 1 < shape.pages[0] && first_positions[leaf_at[ordinal + 1]] <= position) {
      ++ordinal;
    }
    return ordinal;
  }
};

template <typename Key>
PageMemory<Key> ViewMemory(const BPlusTreePages<Key>& pages) {
  return {pages.inner.data(), pages.leaves.data(),
          std::countr_zero(static_cast<unsigned>(pages.layout.order()))};
}

// Requires that there be no links.
template <typename Key>
PackedPages<Key> ViewPacked(const BPlusTreePages<Key>& pages) {
  return {ViewMemory(pages), pages.layout};
}

// Requires links.
template <typename Key>
LinkedPages<Key> ViewLinked(const BPlusTreePages<Key>& pages) {
  const BPlusTreeLinks& links = *pages.links;
  return {ViewMemory(pages),      links.shape,
          links.children.data(),  links.leaf_sizes.data(),
          links.next_leaf.data(), links.first_positions.data(),
          links.leaf_at.data(),   links.ordinal_at.data()};
}

// visit(PackedPages or LinkedPages), whose results must be of one type.
template <typename Key, typename Visit>
auto VisitPages(const BPlusTreePages<Key>& pages, Visit visit) {
  return pages.links ? visit(ViewLinked(pages)) : visit(ViewPacked(pages));
}

}  // namespace cairn::gpu
