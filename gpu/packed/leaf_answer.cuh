#pragma once

#include <cstdint>

#include "gpu/packed/packed_leaf.cuh"
#include "gpu/packed/packed_search.h"

// What leaves say of queries: read by four lanes, or by one.

namespace cairn::gpu {

constexpr bool GivesPositions(PackedAnswer answer) {
  return answer == PackedAnswer::kPosition || answer == PackedAnswer::kRange;
}

// What a query's leaf says of it.
template <int kBits, PackedAnswer kAnswer>
struct LeafAnswer {
  using Quad = LeafQuad<kBits>;
  using Key = typename Quad::Key;
  static constexpr bool kLess = GivesPositions(kAnswer);

  Quad quad;
  uint32_t slots;  // how many are less than the key, or a bit for each that equals it

  __device__ void Compare(Key key, int part) {
    slots = kLess ? quad.CountLess(key, part) : quad.Equal(key, part);
  }
  // Of kRange: 1 if the first slot that is not less is the key's, in all four lanes. A slot
  // without an entry has no row, and the link's slot no key.
  __device__ uint32_t Found(Key key, bool may_have_link, int part, int lane) const {
    uint32_t equal = quad.Equal(key, part);
    if (may_have_link && quad.HasLink(part)) equal &= (uint32_t{1} << (Quad::kEntries - 1)) - 1;
    const int slot = equal != 0 ? __ffs(static_cast<int>(equal)) - 1 : 0;
    const int holder = (lane & ~3) + (Quad::kRowWord + slot) / 4;
    const RowId row_id = __shfl_sync(0xffffffffu, quad.row_id(slot), holder);
    return equal != 0 && row_id != kNoRow ? 1 : 0;
  }
  // Of kRange: how many entries the key has, from the first slot that is not less; the same in all
  // four lanes. For the whole warp together, where keys repeat. A leaf that ends with the key may
  // be continued with it.
  __device__ uint32_t CountEqual(const PackedView& view, Key key, int part) const {
    constexpr uint32_t kOthers = Quad::kEntries - 1;
    Quad leaf = quad;
    uint32_t count = 0;
    bool go_on = true;
    while (true) {
      const bool linked = view.links && leaf.HasLink(part);
      uint32_t equal = leaf.AllEqual(key, part);
      if (linked) equal &= (uint32_t{1} << kOthers) - 1;
      count += go_on ? __popc(equal) : 0;
      go_on = go_on && linked && (equal >> (kOthers - 1) & 1) != 0;
      if (!__any_sync(0xffffffffu, go_on)) return count;
      const uint32_t next = leaf.Link();
      if (go_on) leaf.Load(view.leaves + next, part);
    }
  }
  // Goes on along the chain, for the whole warp together, where the leaf is continued.
  __device__ void FollowLinks(const Leaf* leaves, Key key, int part) {
    constexpr uint32_t kOthers = Quad::kEntries - 1;
    bool follow = true;
    while (true) {
      const bool linked = quad.HasLink(part);
      follow = follow && linked;
      // The link's slot has key zero, and is no entry.
      if (follow && kLess) slots -= (key & Quad::Layout::kMask) != 0 ? 1 : 0;
      if (follow && !kLess) slots &= (uint32_t{1} << kOthers) - 1;
      follow = follow && slots == (kLess ? kOthers : 0);
      if (!__any_sync(0xffffffffu, follow)) return;
      const uint32_t next = quad.Link();
      if (follow) quad.Load(leaves + next, part);
      const uint32_t before = slots;
      Compare(key, part);
      if (!follow) slots = before;
    }
  }
};

// The same of one lane, which has the leaf to itself.
template <int kBits, PackedAnswer kAnswer>
struct LineAnswer {
  using Quad = LeafQuad<kBits>;
  using Key = typename Quad::Key;
  static constexpr bool kLess = GivesPositions(kAnswer);

  LeafLine<kBits> line;
  uint32_t slots;

  __device__ void Compare(Key key) { slots = kLess ? line.CountLess(key) : line.Equal(key); }
  __device__ uint32_t Found(Key key, bool may_have_link) const {
    uint32_t equal = line.Equal(key);
    if (may_have_link && line.HasLink()) equal &= (uint32_t{1} << (Quad::kEntries - 1)) - 1;
    return line.row_id(__ffs(static_cast<int>(equal)) - 1) != kNoRow ? 1 : 0;
  }
  __device__ uint32_t CountEqual(const PackedView& view, Key key) const {
    constexpr uint32_t kOthers = Quad::kEntries - 1;
    LeafLine<kBits> leaf = line;
    uint32_t count = 0;
    while (true) {
      const bool linked = view.links && leaf.HasLink();
      uint32_t equal = leaf.AllEqual(key);
      if (linked) equal &= (uint32_t{1} << kOthers) - 1;
      count += __popc(equal);
      if (!linked || (equal >> (kOthers - 1) & 1) == 0) return count;
      leaf.Load(view.leaves + leaf.Link());
    }
  }
  __device__ void FollowLinks(const Leaf* leaves, Key key) {
    constexpr uint32_t kOthers = Quad::kEntries - 1;
    while (line.HasLink()) {
      if (kLess) slots -= (key & Quad::Layout::kMask) != 0 ? 1 : 0;
      if (!kLess) slots &= (uint32_t{1} << kOthers) - 1;
      if (slots != (kLess ? kOthers : 0)) return;
      line.Load(leaves + line.Link());
      Compare(key);
    }
  }
};

}  // namespace cairn::gpu
