#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/join/join_tile.cuh"

// The information about a tile's matches after its keys have been compared.

namespace cairn::gpu {

// Capacity of shared memory for right keys of a block: a quarter more than for left keys, plus some
// for small tiles. In addition, up to three keys are skipped in their first vector.
constexpr uint32_t RightRoom(uint32_t tile) {
  return (tile + tile / 4 + 128) / 32 * 32;
}

// How much a tile's marks determine about its pairs.
enum class MarksKnown : uint32_t {
  // An entry has several matches, or the possible matches were not all compared together.
  kTooLittle,
  kOneToOne,  // all pairs, and each entry has exactly one: `is_new` is not set
  kAll,
};

// Bit sets of a tile: left entries with a match; left entries with a match that earlier ones do not
// have; and right entries, from the first possible match on, that are a match.
template <int kGroups>
struct TileMarks {
  static constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  static constexpr uint32_t kLeftWords = kTile / 32, kRightWords = RightRoom(kTile) / 32;

  uint32_t matched[kLeftWords];
  uint32_t is_new[kLeftWords];
  uint32_t right[kRightWords];
  MarksKnown known;
};

// Words of marks, and the number of set bits before each, in shared memory.
template <uint32_t kWords>
struct RankedMarks {
  uint32_t bits[kWords];
  uint32_t before[kWords];

  // Called by a warp.
  __device__ void Load(const uint32_t* words, uint32_t lane) {
    constexpr uint32_t kOfLane = (kWords + 31) / 32;
    uint32_t loaded[kOfLane], count = 0;
#pragma unroll
    for (uint32_t i = 0; i < kOfLane; ++i) {
      const uint32_t word = lane * kOfLane + i;
      loaded[i] = word < kWords ? __ldcs(words + word) : 0;
      count += __popc(loaded[i]);
    }
    uint32_t at = count;
    for (uint32_t apart = 1; apart < 32; apart *= 2) {
      const uint32_t less = __shfl_up_sync(kJoinAllLanes, at, apart);
      if (lane >= apart) at += less;
    }
    at -= count;
#pragma unroll
    for (uint32_t i = 0; i < kOfLane; ++i) {
      const uint32_t word = lane * kOfLane + i;
      if (word < kWords) {
        bits[word] = loaded[i];
        before[word] = at;
      }
      at += __popc(loaded[i]);
    }
  }
  __device__ bool Has(uint32_t word, uint32_t lane) const {
    return (bits[word] >> lane & 1) != 0;
  }
  // The number of set bits before bit `lane` of a word.
  __device__ uint32_t Before(uint32_t word, uint32_t lane) const {
    return before[word] + __popc(bits[word] & ((1u << lane) - 1));
  }
};

}  // namespace cairn::gpu
