#pragma once

#include <cstdint>

#include "gpu/packed/packed_leaf.cuh"
#include "gpu/packed/packed_queries.cuh"
#include "gpu/packed/packed_search.h"

// Results that leaves give for queries: read by four lanes, or by one.

namespace cairn::gpu {

constexpr bool GivesPositions(PackedAnswer answer) {
  return answer == PackedAnswer::kPosition || answer == PackedAnswer::kRange;
}

// The result that a query's leaf gives, for a lane that reads the whole leaf itself.
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

// The results that the leaves of four queries give, one query per lane of a quad. The four lanes
// read each leaf together, but the functions below return results for a lane's own query. Must be
// called by the whole warp.
template <int kBits, PackedAnswer kAnswer>
struct QuadAnswer {
  using Quad = LeafQuad<kBits>;
  using Key = typename Quad::Key;
  static constexpr bool kLess = GivesPositions(kAnswer);
  static constexpr int kLanes = Quad::kLanes;
  static constexpr uint32_t kOthers = Quad::kEntries - 1;

  Quad quads[kLanes];  // the leaf of the query of lane i
  uint32_t slots;      // number of slots less than the key, or one bit per slot that equals it

  __device__ void Load(const Leaf* leaves, uint32_t leaf, int part) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      quads[i].Load(leaves, __shfl_sync(kAll, leaf, i, kLanes), part);
    }
  }
  // Whether the leaf is continued.
  __device__ bool HasLink(int part) const {
    return OwnSum(part, [&](int i) { return quads[i].LinkPart(part); }) == 3;
  }
  // Whether the result is further along the chain, if the leaf is continued.
  __device__ bool Compare(Key key, bool linked, int part) {
    return Compare(key, linked, part, (1u << kLanes) - 1);
  }
  // Follows chains if `go_on`, which means that the result is in the next leaf; returns the same
  // for the leaf that it reads. Not for positions.
  __device__ bool Follow(const Leaf* leaves, Key key, bool go_on, int part) {
    const uint32_t next = Link(part);
    uint32_t read = 0;  // one bit per lane of a quad
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t leaf = __shfl_sync(kAll, next, i, kLanes);
      const bool wanted = __shfl_sync(kAll, go_on ? 1 : 0, i, kLanes) != 0;
      if (wanted) quads[i].Load(leaves, leaf, part);
      if (__any_sync(kAll, wanted)) read |= 1u << i;
    }
    const uint32_t before = slots;
    const bool further = Compare(key, HasLink(part), part, read);
    if (!go_on) slots = before;
    return go_on && further;
  }
  // The leaf that continues the chain.
  __device__ uint32_t Link(int part) const {
    return OwnOf(part, [&](int i) { return quads[i].Link(); });
  }
  // The position of the first entry.
  __device__ Position position(int part) const {
    return OwnOf(part, [&](int i) { return quads[i].PositionInAll(); });
  }
  // The first row id, or kNoRow. A slot without an entry has kNoRow.
  __device__ RowId Row(uint32_t equal, int part) const {
    const uint32_t word = Quad::RowWord(equal);
    const RowId row =
        OwnOf(part, [&](int i) { return quads[i].WordInAll(__shfl_sync(kAll, word, i, kLanes)); });
    return equal != 0 ? row : kNoRow;
  }
  // For kRange: 1 if the first slot that is not less has the key.
  __device__ uint32_t Found(Key key, bool linked, int part) const {
    uint32_t equal = Equal(key, part);
    if (linked) equal &= (uint32_t{1} << kOthers) - 1;
    return Row(equal, part) != kNoRow ? 1 : 0;
  }
  // For kRange with repeated keys: the number of entries with the key, from the first slot that is
  // not less. If a leaf ends with the key, the leaf that continues it may have more of them.
  __device__ uint32_t CountEqual(const PackedView& view, Key key, int part) const {
    return OwnOf(part,
                 [&](int i) { return CountEqualIn(view, quads[i], KeyOfQuad(key, i), part); });
  }

 private:
  static constexpr uint32_t kAll = 0xffffffffu;

  // For the queries of the lanes in `which`, one bit each; undefined for others.
  __device__ bool Compare(Key key, bool linked, int part, uint32_t which) {
    slots = kLess ? CountLess(key, part) : Equal(key, part, which);
    if (!linked) return false;
    // The link's slot has key zero, but is not an entry.
    if (kLess) {
      slots -= (key & Quad::Layout::kMask) != 0 ? 1 : 0;
    } else {
      slots &= (uint32_t{1} << kOthers) - 1;
    }
    return slots == (kLess ? kOthers : 0);
  }

  // Returns of(part) for the lane's own part; all lanes know the four values.
  template <typename Of>
  static __device__ uint32_t OwnOf(int part, Of of) {
    uint32_t own = 0;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t value = of(i);
      if (part == i) own = value;
    }
    return own;
  }
  // For each part, the sum of all lanes' of(part), in three steps in total; a sum for all lanes
  // would take two steps for each part.
  template <typename Of>
  static __device__ uint32_t OwnSum(int part, Of of) {
    uint32_t values[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[i] = of(i);
    // A lane first sends the values of the other two lanes, then that of its neighbor.
    const bool low = part < 2, even = part % 2 == 0;
    const uint32_t first =
        (low ? values[0] : values[2]) + __shfl_xor_sync(kAll, low ? values[2] : values[0], 2);
    const uint32_t second =
        (low ? values[1] : values[3]) + __shfl_xor_sync(kAll, low ? values[3] : values[1], 2);
    return (even ? first : second) + __shfl_xor_sync(kAll, even ? second : first, 1);
  }

  __device__ uint32_t Equal(Key key, int part, uint32_t which = (1u << kLanes) - 1) const {
    return Quad::EqualOf(OwnSum(part, [&](int i) {
      return (which >> i & 1) != 0 ? quads[i].EqualPart(KeyOfQuad(key, i), part) : 0;
    }));
  }
  __device__ uint32_t CountLess(Key key, int part) const {
    return Quad::LessOf(
        OwnSum(part, [&](int i) { return quads[i].LessPart(KeyOfQuad(key, i), part); }));
  }
  // The same result in all four lanes.
  static __device__ uint32_t CountEqualIn(const PackedView& view, Quad leaf, Key key, int part) {
    uint32_t count = 0;
    bool go_on = true;
    while (true) {
      const bool linked = view.links && leaf.HasLink(part);
      uint32_t equal = leaf.AllEqual(key, part);
      if (linked) equal &= (uint32_t{1} << kOthers) - 1;
      count += go_on ? __popc(equal) : 0;
      go_on = go_on && linked && (equal >> (kOthers - 1) & 1) != 0;
      if (!__any_sync(kAll, go_on)) return count;
      const uint32_t next = leaf.Link();
      if (go_on) leaf.Load(view.leaves, next, part);
    }
  }
};

}  // namespace cairn::gpu
