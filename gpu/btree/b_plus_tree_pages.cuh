#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/layout/b_plus_tree_layout.h"

// B+-tree pages as kernels use them. There are two forms with one interface, so that searches,
// traversals and range copies are written only once. For packed pages, as created in bulk,
// children, sizes and positions are computed. For linked pages, after single inserts, they are read
// from arrays.
//
// A page of level 1 and above is identified by a number that its parent provides, a leaf by its
// position in memory. Ordinals number the leaves in key order.
namespace cairn::gpu {

// The part that both forms share.
template <typename Key>
struct PageMemory {
  const Key* inner;  // page i is at i * order: its separators, padded with the maximum key
  // Leaf i is at i * LeafStride: keys, then row ids. Empty places have the maximum key.
  const Key* leaves;
  int order_bits;

  __device__ uint32_t order() const { return 1u << order_bits; }
  // Addresses; faster if the order is known at compile time, as kOrder.
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
  // The number of an inner page among all inner pages, given the number from its parent or root().
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
  // The ordinal of the leaf with a position, which must be that of an entry.
  __device__ uint32_t OrdinalOf(Position position) const {
    return layout.level(0).page_of(position);
  }
};

template <typename Key>
struct LinkedPages : PageMemory<Key> {
  BPlusTreeShape shape;
  const uint32_t* children;         // those of inner page i start at i * (order + 1)
  const uint32_t* leaf_sizes;       // by leaf
  const uint32_t* next_leaf;        // by leaf: the next leaf in key order
  const Position* first_positions;  // by leaf
  const uint32_t* leaf_at;          // by ordinal
  const uint32_t* ordinal_at;       // by position / order: of the leaf that has position i * order

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
  // The ordinal of the leaf with a position. Leaves are at least half full, so the loop has few
  // iterations.
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

// Requires pages without links.
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

// Calls visit(PackedPages or LinkedPages); both results must have the same type.
template <typename Key, typename Visit>
auto VisitPages(const BPlusTreePages<Key>& pages, Visit visit) {
  return pages.links ? visit(ViewLinked(pages)) : visit(ViewPacked(pages));
}

}  // namespace cairn::gpu
