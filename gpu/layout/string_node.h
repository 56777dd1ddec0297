#pragma once

#include <cstddef>
#include <cstdint>

#include "index/strings/sparse_key.h"

#ifdef __CUDACC__
#define CAIRN_STRING_NODE_HD __host__ __device__
#else
#define CAIRN_STRING_NODE_HD
#endif

namespace cairn::gpu {

// A node of a tree of partial keys on the GPU, half as large as the CPU's PartialKeyNode: a line of
// 64 bytes that four lanes read, 16 bytes each, its *chunks*. A node tests up to 15 bits of a key,
// each within kMaxSpan of the first of them. It distinguishes up to 20 pieces by sparse partial
// keys (index/strings/sparse_key.h).
//
//   word 0 of chunk c   for bits 4c to 4c + 3 of a partial key, one byte each: the distance of the
//                       key's bit from the first bit. The lowest bit of a partial key is the last
//                       bit of the key. There is no bit 15.
//   chunk 0, word 1     the first child, or the number of a leaf's first key
//            word 2     bits 0 to 19: for an inner node, the slots at which children start; for a
//                       leaf, its number of keys, or 0 if that is more than its slots: then word 0
//                       has the number, and all keys are ties. Bits 20 to 30: low bits of the
//                       first bit. Bit 31: set for a leaf
//            word 3     high bits of the first bit, and slot 1; slot 0 is 0 and not stored
//   chunk c, words 1-3  slots 6c - 4 to 6c - 2 in their low halves, the next three in their high
struct alignas(64) StringNode {
  static constexpr uint32_t kSlots = 20;
  static constexpr uint32_t kMaxSpan = 255;
  // Keys whose first difference is after this bit are ties: this affects keys of more than 16 MB.
  static constexpr uint32_t kMaxBit = (uint32_t{1} << 27) - 1;

  static constexpr uint32_t kLeaf = uint32_t{1} << 31;
  static constexpr uint32_t kStarts = (uint32_t{1} << 20) - 1;

  uint32_t words[16];

  CAIRN_STRING_NODE_HD bool is_leaf() const { return (words[2] & kLeaf) != 0; }
  CAIRN_STRING_NODE_HD uint32_t base() const { return words[1]; }
  CAIRN_STRING_NODE_HD uint32_t entries() const {
    const uint32_t few = words[2] & kStarts;
    return few != 0 ? few : words[0];
  }
  // Slot s, for s from 1 to 19.
  CAIRN_STRING_NODE_HD uint16_t slot(uint32_t s) const {
    if (s == 1) return static_cast<uint16_t>(words[3] >> 16);
    const uint32_t chunk = (s + 4) / 6, v = (s + 4) % 6;
    return static_cast<uint16_t>(words[4 * chunk + 1 + v % 3] >> (16 * (v / 3)));
  }
  // The number of a leaf's keys after slot s that are tied to its key.
  CAIRN_STRING_NODE_HD uint32_t TiesBehind(uint32_t s) const {
    const uint32_t keys = entries();
    if (keys > kSlots) return keys - 1;
    if (s + 1 >= keys) return 0;
    const uint32_t next = slot(s + 1);
    return next >= kTied ? next & (kMixedTies - 1) : 0;
  }
};
static_assert(sizeof(StringNode) == 64);

}  // namespace cairn::gpu

#undef CAIRN_STRING_NODE_HD
