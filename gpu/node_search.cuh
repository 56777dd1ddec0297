#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu/entry_array.h"

namespace cairn::gpu {

// Keys alone, in global or shared memory.
template <typename Key>
struct KeysView {
  const Key* keys;

  __device__ Key key(size_t i) const { return keys[i]; }
};

// Reads kCount words of 4 bytes with loads as wide as that number allows; `from` is aligned to
// them.
template <int kCount>
__device__ inline void LoadWords(const uint32_t* from, uint32_t (&words)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(from + i);
      words[i] = four.x, words[i + 1] = four.y, words[i + 2] = four.z, words[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from + i);
      words[i] = two.x, words[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words[i] = from[i];
  }
}

// Reads kCount keys from key `first` on, which is a multiple of kCount.
template <int kCount, typename Key>
__device__ inline void LoadKeys(const KeysView<Key>& view, size_t first, Key (&keys)[kCount]) {
  constexpr int kWords = sizeof(Key) / 4;
  uint32_t words[kCount * kWords];
  LoadWords(reinterpret_cast<const uint32_t*>(view.keys + first), words);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kWords == 1) {
      keys[i] = words[i];
    } else {
      keys[i] = uint64_t{words[2 * i + 1]} << 32 | words[2 * i];
    }
  }
}

template <int kCount, typename Key>
__device__ inline void LoadKeys(const EntryView<Key, EntryLayout::kSoA>& view, size_t first,
                                Key (&keys)[kCount]) {
  LoadKeys<kCount>(KeysView<Key>{view.keys}, first, keys);
}

template <int kCount, typename Key>
__device__ inline void LoadKeys(const EntryView<Key, EntryLayout::kAoS>& view, size_t first,
                                Key (&keys)[kCount]) {
  if constexpr (sizeof(Key) == 4 && kCount % 2 == 0) {
    uint32_t words[2 * kCount];
    LoadWords(view.words + 2 * first, words);
#pragma unroll
    for (int i = 0; i < kCount; ++i) keys[i] = words[2 * i];
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) keys[i] = view.key(first + i);
  }
}

// As many lanes, but a power of two, as there are words of 16 bytes in a node.
constexpr int LanesForBytes(size_t bytes) {
  int lanes = 1;
  while (lanes < 32 && static_cast<size_t>(lanes) * 2 * 16 <= bytes) lanes *= 2;
  return lanes;
}

// Compares queries with nodes of kKeys keys by kLanes lanes, each of which takes as many keys next
// to each other: section 3.4 of Henneberg and Schuhknecht (2025), where a lane takes one key. Wider
// loads and fewer lanes answer more queries at a time.
template <int kKeys, int kLanes>
struct NodeSearch {
  static_assert(kKeys % kLanes == 0 && 32 % kLanes == 0);
  static constexpr int kPerLane = kKeys / kLanes;

  __device__ static uint32_t FirstKeyOfLane() { return threadIdx.x % kLanes * kPerLane; }

  // less[i] = how many keys of a node are below queries[i]; load(i, keys) gives this lane's keys of
  // the node. All lanes get the counts. Whole warps call it.
  template <int kQueries, typename Key, typename Load>
  __device__ static void CountLess(const Key (&queries)[kQueries], uint32_t (&less)[kQueries],
                                   Load load) {
    Key keys[kQueries][kPerLane];
#pragma unroll
    for (int i = 0; i < kQueries; ++i) load(i, keys[i]);
    // Four counts of at most 32 share a word on their way through the lanes.
    uint32_t counts[(kQueries + 3) / 4] = {};
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      uint32_t count = 0;
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) count += keys[i][j] < queries[i] ? 1 : 0;
      counts[i / 4] |= count << (8 * (i % 4));
    }
#pragma unroll
    for (int i = 0; i < (kQueries + 3) / 4; ++i) {
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) {
        counts[i] += __shfl_xor_sync(0xffffffffu, counts[i], step);
      }
    }
#pragma unroll
    for (int i = 0; i < kQueries; ++i) less[i] = counts[i / 4] >> (8 * (i % 4)) & 0xff;
  }
};

}  // namespace cairn::gpu
