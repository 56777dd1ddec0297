#pragma once

#include <cstdint>

#include "gpu/packed/packed_leaf.cuh"
#include "gpu/packed/packed_queries.cuh"
#include "gpu/packed/packed_search.h"

// What leaves say of queries: read by four lanes, or by one.

namespace cairn::gpu {

constexpr bool GivesPositions(PackedAnswer answer) {
  return answer == PackedAnswer::kPosition || answer == PackedAnswer::kRange;
}

// What a query's leaf says of it, of one lane that has the leaf to itself.
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

// What the leaves of four queries say of them, the lanes of a quad having one each: the four read
// each leaf together, but what is said below is for a lane's own query. For the whole warp
// together.
template <int kBits, PackedAnswer kAnswer>
struct QuadAnswer {
  using Quad = LeafQuad<kBits>;
  using Key = typename Quad::Key;
  static constexpr bool kLess = GivesPositions(kAnswer);
  static constexpr int kLanes = Quad::kLanes;
  static constexpr uint32_t kOthers = Quad::kEntries - 1;

  Quad quads[kLanes];  // the leaf of lane i's query
  uint32_t slots;      // how many are less than the key, or a bit for each that equals it

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
  // Whether the answer is further down the chain, where the leaf is continued.
  __device__ bool Compare(Key key, bool linked, int part) {
    return Compare(key, linked, part, (1u << kLanes) - 1);
  }
  // Goes on along chains, where `go_on` says that the answer is there; says so of what is read. Not
  // for positions.
  __device__ bool Follow(const Leaf* leaves, Key key, bool go_on, int part) {
    const uint32_t next = Link(part);
    uint32_t read = 0;  // a bit a lane of any quad
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
  // The leaf that the chain goes on with.
  __device__ uint32_t Link(int part) const {
    return OwnOf(part, [&](int i) { return quads[i].Link(); });
  }
  // The position of the first entry.
  __device__ Position position(int part) const {
    return OwnOf(part, [&](int i) { return quads[i].PositionInAll(); });
  }
  // The first row id, or kNoRow. A slot without an entry has none.
  __device__ RowId Row(uint32_t equal, int part) const {
    const uint32_t word = Quad::RowWord(equal);
    const RowId row =
        OwnOf(part, [&](int i) { return quads[i].WordInAll(__shfl_sync(kAll, word, i, kLanes)); });
    return equal != 0 ? row : kNoRow;
  }
  // Of kRange: 1 if the first slot that is not less is the key's.
  __device__ uint32_t Found(Key key, bool linked, int part) const {
    uint32_t equal = Equal(key, part);
    if (linked) equal &= (uint32_t{1} << kOthers) - 1;
    return Row(equal, part) != kNoRow ? 1 : 0;
  }
  // Of kRange, where keys repeat: how many entries the key has, from the first slot that is not
  // less. A leaf that ends with the key may be continued with it.
  __device__ uint32_t CountEqual(const PackedView& view, Key key, int part) const {
    return OwnOf(part,
                 [&](int i) { return CountEqualIn(view, quads[i], KeyOfQuad(key, i), part); });
  }

 private:
  static constexpr uint32_t kAll = 0xffffffffu;

  // For the queries of the lanes of `which`, a bit each; means nothing for others.
  __device__ bool Compare(Key key, bool linked, int part, uint32_t which) {
    slots = kLess ? CountLess(key, part) : Equal(key, part, which);
    if (!linked) return false;
    // The link's slot has key zero, and is no entry.
    if (kLess) {
      slots -= (key & Quad::Layout::kMask) != 0 ? 1 : 0;
    } else {
      slots &= (uint32_t{1} << kOthers) - 1;
    }
    return slots == (kLess ? kOthers : 0);
  }

  // of(part), of four that all lanes know.
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
  // The sum of all lanes' of(part): in three steps, where each sum for all lanes would take two.
  template <typename Of>
  static __device__ uint32_t OwnSum(int part, Of of) {
    uint32_t values[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[i] = of(i);
    // A lane gives away what the other two want, then what its neighbour does.
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
  // The same in all four lanes.
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
