#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/leaf_start.cuh"

namespace cairn::gpu {

// A bit array in device memory. A block stages the words that it walks over in shared memory. Words
// past the last bit must be readable.
class WalkBits {
 public:
  // Threads per block, and keys that each thread walks over.
  static constexpr int kThreads = 32;
  static constexpr size_t kTile = kLeafTile;

  // Shared memory, with one word of padding per tile, so that threads at the same position of their
  // tiles read from different banks.
  using Staged = uint32_t[kThreads * (kTile / 32 + 1)];

  // Called by the whole block, whose first tile is `first_tile`; `words` has `count` words.
  __device__ WalkBits(const uint32_t* words, size_t count, size_t first_tile, Staged& staged)
      : words_(words), staged_(staged), first_word_(first_tile * (kTile / 32)) {
    for (size_t i = threadIdx.x; i < kStagedWords; i += kThreads) {
      if (first_word_ + i < count) staged[i + i / (kTile / 32)] = words[first_word_ + i];
    }
  }

  __device__ bool operator[](size_t i) const { return (Word(i / 32) >> (i % 32) & 1) != 0; }
  // The 32 bits from bit i on.
  __device__ uint32_t Window(size_t i) const {
    return __funnelshift_r(Word(i / 32), Word(i / 32 + 1), static_cast<unsigned>(i % 32));
  }
  // The first bit that is set in [i, end), or `end`.
  __device__ size_t Next(size_t i, size_t end) const {
    while (i < end) {
      const uint32_t window = Window(i);
      if (window != 0) return min(end, i + __ffs(static_cast<int>(window)) - 1);
      i += 32;
    }
    return end;
  }

 private:
  static constexpr size_t kStagedWords = kThreads * (kTile / 32);
  __device__ uint32_t Word(size_t i) const {
    const size_t local = i - first_word_;
    return local < kStagedWords ? staged_[local + local / (kTile / 32)] : words_[i];
  }

  const uint32_t* words_;
  const uint32_t* staged_;
  size_t first_word_;
};

// Cuts the keys of one tile into leaves, one after the other: as many whole cells of one block as
// fit a leaf. Tiles are independent: the leaves of a tile begin at the first cell that begins in
// the tile, and end where those of the next tile begin. A leaf ends with its tile, which costs half
// a leaf in about 110.
template <typename Key>
struct LeafWalk {
  static constexpr size_t kTile = WalkBits::kTile;

  const Key* keys;
  size_t size;
  WalkBits cells, blocks;
  int bits;      // of a key in a leaf
  int capacity;  // keys per leaf
  bool repeat;   // whether keys may be equal

  // Calls leaf(first) for each primary leaf, and then linked(first, end, is_first) for each leaf of
  // its chain.
  template <typename EmitLeaf, typename EmitLinked>
  __device__ void ForEachLeaf(size_t tile, EmitLeaf leaf, EmitLinked linked) const {
    const size_t stop = cells.Next(min((tile + 1) * kTile, size), size);
    size_t i = cells.Next(tile * kTile, size);
    while (i < stop) {
      if (FollowsGap(i)) leaf(i);
      leaf(i);
      const size_t end = LeafEnd(i, stop);
      // A chain: in all leaves except the last, the last slot is used for the link.
      bool is_first = true;
      for (size_t next = i; !Fits(next, end); is_first = false) {
        next += capacity - 1;
        linked(next, end, is_first);
      }
      i = end;
    }
  }

 private:
  // Whether keys [i, end) fit one leaf without a link.
  __device__ bool Fits(size_t i, size_t end) const {
    if (end - i != static_cast<size_t>(capacity) || !repeat) {
      return end - i <= static_cast<size_t>(capacity);
    }
    return LowBits(keys[end - 1], bits) != 0;
  }
  // Whether the block just before that of key i has no keys. Only true if key i begins a block.
  __device__ bool FollowsGap(size_t i) const {
    if (!blocks[i] || bits == static_cast<int>(sizeof(Key)) * 8) return false;
    const Key block = keys[i] >> bits;
    return i == 0 ? block != 0 : block != (keys[i - 1] >> bits) + 1;
  }

  // The end of the leaf, or of the chain of leaves, that begins at key i; `stop` begins a cell.
  __device__ size_t LeafEnd(size_t i, size_t stop) const {
    // Bit b represents the end i + 1 + b.
    const uint32_t room = (uint32_t{1} << capacity) - 1;
    uint32_t cell_ends = cells.Window(i + 1) & room;
    uint32_t block_ends = blocks.Window(i + 1) & room;
    if (stop - i <= static_cast<size_t>(capacity)) {
      const uint32_t last = uint32_t{1} << (stop - i - 1);
      block_ends |= last;
      cell_ends |= last;
    }
    if (block_ends != 0) return i + __ffs(static_cast<int>(block_ends));
    if (cell_ends != 0) return i + 32 - __clz(static_cast<int>(cell_ends));
    return cells.Next(i + 1 + capacity, stop);
  }
};

}  // namespace cairn::gpu
