#pragma once

#include "cairn/types.h"

namespace cairn::gpu {

// A block is the set of keys that agree in all but their low `bits` bits; this is its number.
template <typename Key>
__host__ __device__ inline Key BlockOf(Key key, int bits) {
  return bits == static_cast<int>(sizeof(Key)) * 8 ? Key{0} : key >> bits;
}

// The part of a key that leaves keep.
template <typename Key>
__host__ __device__ inline Key LowBits(Key key, int bits) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  return bits == kKeyBits ? key : static_cast<Key>(key & ((Key{1} << bits) - 1));
}

// The first key that a leaf covers may be any key in [least, greatest]: no key of the run is
// between them.
template <typename Key>
struct LeafStart {
  Key least, greatest;
};

// The start of primary leaf `leaf` of a cut (first, bits) of `size` keys.
template <typename Key>
__device__ inline LeafStart<Key> FindLeafStart(const Key* keys, size_t size, const Position* first,
                                               size_t leaf, int bits) {
  if (leaf == 0) return {0, 0};
  const size_t i = first[leaf];
  if (i == 0) {  // follows a leaf for the blocks before the first key's block
    const Key start = BlockOf(keys[0], bits) << bits;
    return {start, start};
  }
  const Key before = keys[i - 1];
  const Key block_before = BlockOf(before, bits);
  const bool empty = i == first[leaf + 1];
  if (empty || BlockOf(keys[i], bits) != block_before) {
    const Key start = (empty ? block_before + 1 : BlockOf(keys[i], bits)) << bits;
    return {start, start};
  }
  return {static_cast<Key>(before + 1), keys[i]};
}

}  // namespace cairn::gpu
