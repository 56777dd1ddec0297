#pragma once

#include "cairn/types.h"

namespace cairn::gpu {

// The keys that agree above their low `bits` bits are a block; this is its number.
template <typename Key>
__host__ __device__ inline Key BlockOf(Key key, int bits) {
  return bits == static_cast<int>(sizeof(Key)) * 8 ? Key{0} : key >> bits;
}

// What leaves keep of a key.
template <typename Key>
__host__ __device__ inline Key LowBits(Key key, int bits) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  return bits == kKeyBits ? key : static_cast<Key>(key & ((Key{1} << bits) - 1));
}

// The first key that a leaf answers for may be any in [least, greatest]: what stands in between is
// in no leaf.
template <typename Key>
struct LeafStart {
  Key least, greatest;
};

// That of primary leaf `leaf` of a cut (first, bits) of `size` keys.
template <typename Key>
__device__ inline LeafStart<Key> FindLeafStart(const Key* keys, size_t size, const Position* first,
                                               size_t leaf, int bits) {
  if (leaf == 0) return {0, 0};
  const size_t i = first[leaf];
  if (i == 0) {  // behind a leaf for the blocks before the first key's
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
