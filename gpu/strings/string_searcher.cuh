#pragma once

#include <cstdint>

#include "gpu/strings/string_query.cuh"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_tree.h"

namespace cairn::gpu {

// How four lanes descend a tree of partial keys: the sources of a query's bits, and the search
// within a node.

inline constexpr int kGroupsInBlock = kStringThreads / kGroupLanes;

// A slot of a node that a query has reached.
struct Place {
  uint32_t node;
  uint32_t base, meta;  // words 1 and 2 of the node
  uint32_t slot;

  __device__ bool in_leaf() const { return (meta & StringNode::kLeaf) != 0; }
  __device__ uint32_t child() const {
    return base + __popc((meta & StringNode::kStarts) << (31 - slot)) - 1;
  }
  __device__ uint32_t key() const { return base + slot; }
};

// The bits of a group's query, for a tree whose nodes test no bits past kChunks * 32 - 8 bytes: in
// shared memory, as words whose highest bit is the first. Reading a bit is a load and a shift.
template <int kChunks>
class StagedBits {
 public:
  static constexpr int kWords = 8 * kChunks - 2;
  static constexpr bool kFar = false;  // whether a node's first bit may have high bits

  __device__ StagedBits(const StringQuery& query, const QueryUnits<kChunks>& units, int lane) {
    __shared__ uint32_t
        staged[kGroupsInBlock][8 * kChunks + 1];  // odd, so that groups begin at different banks
    uint32_t* const words = staged[threadIdx.x / kGroupLanes];
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int j = c * kGroupLanes + lane;
      const uint64_t unit = static_cast<uint32_t>(j) < units.size ? units.units[c] : query.Filler();
      if (j == 0) continue;
      words[2 * j - 2] = __byte_perm(static_cast<uint32_t>(unit), 0, 0x0123);
      words[2 * j - 1] = __byte_perm(static_cast<uint32_t>(unit >> 32), 0, 0x0123);
    }
    __syncwarp();
    words_ = words;
  }
  __device__ uint32_t operator[](uint32_t bit) const {
    return __funnelshift_r(words_[bit / 32], 0, ~bit) & 1;
  }

 private:
  const uint32_t* words_;
};

// The same, read from the query itself, for longer keys.
template <int kChunks>
class QueryBits {
 public:
  static constexpr bool kFar = true;

  __device__ QueryBits(const StringQuery& query, const QueryUnits<kChunks>&, int) : query_(query) {}
  __device__ uint32_t operator[](uint32_t bit) const { return query_.Bit(bit); }

 private:
  const StringQuery& query_;
};

// The bits of a query before `end`, followed by zeros or ones: the minimum or maximum key with this
// prefix.
template <typename Bits>
struct PrefixBits {
  static constexpr bool kFar = Bits::kFar;
  const Bits& bits;
  uint32_t end;
  bool ones;

  __device__ uint32_t operator[](uint32_t bit) const {
    return bit < end ? bits[bit] : ones ? 1 : 0;
  }
};

// A warp's state in a search: the lane of the thread within its group, and the first lane of the
// group.
struct Searcher {
  const StringTreeView& tree;
  const int lane, shift;
  uint32_t root_bits[6];     // of bits lane, lane + 4, … of a partial key
  uint32_t root_places = 0;  // which of these exist

  __device__ explicit Searcher(const StringTreeView& view)
      : tree(view),
        lane(threadIdx.x % kGroupLanes),
        shift(threadIdx.x % 32 / kGroupLanes * kGroupLanes) {
#pragma unroll
    for (int j = 0; j < 6; ++j) {
      const uint32_t bit = __ldg(view.root_bits + lane + kGroupLanes * j);
      root_bits[j] = bit == StringTree::kNoRootBit ? 0 : bit;
      root_places |= (bit == StringTree::kNoRootBit ? 0u : 1u) << (kGroupLanes * j);
    }
  }

  // All functions below are called by a warp; results are the same in all lanes of a group.

  // The node that the root leads to.
  template <typename Bits>
  __device__ uint32_t Enter(const Bits& bits) const {
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 6; ++j) partial |= bits[root_bits[j]] << (kGroupLanes * j);
    partial = (partial & root_places) << lane;
    partial |= __shfl_xor_sync(kAllLanes, partial, 1, kGroupLanes);
    partial |= __shfl_xor_sync(kAllLanes, partial, 2, kGroupLanes);
    return __ldg(tree.root + partial);
  }

  // The last slot of the node whose sparse partial key is a subset of the query's.
  template <typename Bits>
  __device__ Place Visit(uint32_t node, const Bits& bits) const {
    uint4 chunk = __ldg(reinterpret_cast<const uint4*>(tree.nodes + node) + lane);
    Place place = {node, __shfl_sync(kAllLanes, chunk.y, 0, kGroupLanes),
                   __shfl_sync(kAllLanes, chunk.z, 0, kGroupLanes), 0};
    uint32_t first_bit = place.meta >> 20 & 0x7FF;
    if constexpr (Bits::kFar) {
      first_bit |= (__shfl_sync(kAllLanes, chunk.w, 0, kGroupLanes) & 0xFFFF) << 11;
    }
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      partial |= bits[first_bit + (chunk.x >> (8 * j) & 0xFF)] << j;
    }
    partial <<= 4 * lane;
    partial |= __shfl_xor_sync(kAllLanes, partial, 1, kGroupLanes);
    partial |= __shfl_xor_sync(kAllLanes, partial, 2, kGroupLanes);
    partial &= 0x7FFF;  // there is no bit 15
    // Works on half words: a slot qualifies if all its bits are in the partial key. The half words
    // of the first chunk that are not slots are changed so that they never qualify.
    const uint32_t absent = ~(partial | partial << 16);
    if (lane == 0) {
      chunk.y = chunk.z = uint32_t{kTied} << 16 | kTied;
      chunk.w |= kTied;
    }
    const uint32_t words[3] = {chunk.y & absent, chunk.z & absent, chunk.w & absent};
    // Bits 13 to 15: the slots in low halves; bits 29 to 31: those in high halves.
    uint32_t zero = 0;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const uint32_t halves = ~(((words[j] & 0x7FFF7FFFu) + 0x7FFF7FFFu) | words[j]) & 0x80008000u;
      zero |= halves >> (2 - j);
    }
    if (zero != 0) {
      const uint32_t last = 31 - __clz(static_cast<int>(zero));
      place.slot = lane == 0 ? 1 : 6 * lane - 4 + (last & 15) - 13 + (last >> 4) * 3;
    }
    place.slot = max(place.slot, __shfl_xor_sync(kAllLanes, place.slot, 1, kGroupLanes));
    place.slot = max(place.slot, __shfl_xor_sync(kAllLanes, place.slot, 2, kGroupLanes));
    return place;
  }

  // The leaf's slot that the tree leads to.
  template <typename Bits>
  __device__ Place Descend(const Bits& bits) const {
    Place place = Visit(Enter(bits), bits);
    while (__any_sync(kAllLanes, !place.in_leaf())) {
      const Place next = Visit(place.in_leaf() ? place.node : place.child(), bits);
      if (!place.in_leaf()) place = next;
    }
    return place;
  }

  __device__ uint32_t TiesBehind(const Place& place) const {
    return tree.nodes[place.node].TiesBehind(place.slot);
  }
};

}  // namespace cairn::gpu
