#pragma once

#include <cstdint>

#include "gpu/strings/string_query.cuh"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_tree.h"

namespace cairn::gpu {

// How four lanes go down a tree of partial keys: where the bits of a query come from, and what a
// node does with them.

inline constexpr int kGroupsInBlock = kStringThreads / kGroupLanes;

// A slot of a node, where a query came to.
struct Place {
  uint32_t node;
  uint32_t base, meta;  // the node's words 1 and 2
  uint32_t slot;

  __device__ bool in_leaf() const { return (meta & StringNode::kLeaf) != 0; }
  __device__ uint32_t child() const {
    return base + __popc((meta & StringNode::kStarts) << (31 - slot)) - 1;
  }
  __device__ uint32_t key() const { return base + slot; }
};

// The bits of a group's query, for a tree none of whose nodes looks at any behind kChunks * 32 - 8
// bytes: in shared memory, as words whose highest bit is the first. A bit is a load and a shift.
template <int kChunks>
class StagedBits {
 public:
  static constexpr int kWords = 8 * kChunks - 2;
  static constexpr bool kFar = false;  // whether a node's first bit may have high bits

  __device__ StagedBits(const StringQuery& query, const QueryUnits<kChunks>& units, int lane) {
    __shared__ uint32_t
        staged[kGroupsInBlock][8 * kChunks + 1];  // odd: groups begin at other banks
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

// The same where the query is: for longer keys.
template <int kChunks>
class QueryBits {
 public:
  static constexpr bool kFar = true;

  __device__ QueryBits(const StringQuery& query, const QueryUnits<kChunks>&, int) : query_(query) {}
  __device__ uint32_t operator[](uint32_t bit) const { return query_.Bit(bit); }

 private:
  const StringQuery& query_;
};

// The bits of a query before `end`, then zeros or ones: the least, or the greatest, key that starts
// with them.
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

// A warp's part in a search: which lane of its group a thread is, and where the group's lanes
// begin.
struct Searcher {
  const StringTreeView& tree;
  const int lane, shift;
  uint32_t root_bits[6];     // of places lane, lane + 4, …
  uint32_t root_places = 0;  // which of these there are

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

  // All of what follows by a warp; the same in all lanes of a group.

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

  // The last slot of the node whose sparse partial key is in the query's.
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
    partial &= 0x7FFF;  // there is no place 15
    // Halves of words: a slot qualifies where all its bits are in the partial key. Those of the
    // first chunk that are none are made not to.
    const uint32_t absent = ~(partial | partial << 16);
    if (lane == 0) {
      chunk.y = chunk.z = uint32_t{kTied} << 16 | kTied;
      chunk.w |= kTied;
    }
    const uint32_t words[3] = {chunk.y & absent, chunk.z & absent, chunk.w & absent};
    uint32_t zero = 0;  // bits 13 to 15: the slots in low halves; 29 to 31: those in high ones
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
