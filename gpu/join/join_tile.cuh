#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cairn/types.h"
#include "gpu/join/merge_join.h"

// A block of threads joins a tile of the left side with what may match of the right one.

namespace cairn::gpu {

inline constexpr int kJoinThreads = 256;
inline constexpr int kJoinWarps = kJoinThreads / 32;
inline constexpr unsigned kJoinAllLanes = 0xffffffffu;

// The first of keys[begin, end) that is not less than `key`, or `end`.
template <typename Key>
__device__ inline uint32_t LowerBoundIn(const Key* keys, uint32_t begin, uint32_t end, Key key) {
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Copies from[i] to shared[phase + i], asynchronously, by the whole block; `phase` is where
// `from` lies in its 16 bytes (PhaseOf), and `shared` is aligned to 16.
template <typename T>
__device__ inline uint32_t PhaseOf(const T* from) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) / sizeof(T) % (16 / sizeof(T)));
}
template <typename T>
__device__ inline void CopyToShared(T* shared, const T* from, uint32_t count, uint32_t phase) {
  constexpr uint32_t kPer = 16 / sizeof(T);
  const uint32_t end = phase + count;
  for (uint32_t first = threadIdx.x * kPer; first < end; first += kJoinThreads * kPer) {
    const auto address = [&](uint32_t i) {
      return static_cast<uint32_t>(__cvta_generic_to_shared(shared + i));
    };
    if (first >= phase && first + kPer <= end) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(first)),
                   "l"(from + (first - phase))
                   : "memory");
      continue;
    }
    for (uint32_t i = max(first, phase); i < min(first + kPer, end); ++i) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address(i)),
                   "l"(from + (i - phase)), "n"(sizeof(T))
                   : "memory");
    }
  }
}

// Lower bounds in keys[0, size), in shared memory, of the ascending keys of a warp: lane l has keys
// 32 * g + l of `count`, at least one, from `own` on. First those of every 32nd key, then of all of
// them in windows as long as the longest between these, so that all lanes do the same steps: an
// addition, a read, a comparison.
template <int kGroups, typename Key>
__device__ inline void SearchTile(const Key* keys, uint32_t size, const Key* own, uint32_t count,
                                  uint32_t lane, const Key (&wanted)[kGroups],
                                  uint32_t (&found)[kGroups]) {
  const auto first_step = [](uint32_t n) { return 1u << (31 - __clz(static_cast<int>(n))); };
  uint32_t bound = 0;
  if (size != 0) {
    const Key fence = own[min(lane * 32, count - 1)];
    uint32_t step = first_step(size);
    if (keys[step - 1] < fence) bound = size - step + 1;
    for (step /= 2; step != 0; step /= 2) {
      if (keys[bound + step - 1] < fence) bound += step;
    }
  }
  uint32_t longest = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t begin = __shfl_sync(kJoinAllLanes, bound, g);
    longest = max(longest, __shfl_sync(kJoinAllLanes, bound, g + 1) - begin);
    found[g] = begin;
  }
  if (longest == 0) return;
  uint32_t step = first_step(longest);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    found[g] = min(found[g], size - longest);
    if (keys[found[g] + step - 1] < wanted[g]) found[g] += longest - step + 1;
  }
  for (step /= 2; step != 0; step /= 2) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (keys[found[g] + step - 1] < wanted[g]) found[g] += step;
    }
  }
}

// A tile's matches, in the registers of a block: lane l of warp w has entries w * 32 * kGroups +
// 32 * g + l of the tile.
template <int kGroups>
struct TileMatches {
  static constexpr uint32_t kTile = kJoinThreads * kGroups;

  uint32_t first[kGroups];  // the first match, an entry of the right side
  uint32_t count[kGroups];
};

// The stretch of the right side that a tile's matches begin in, and its keys in shared memory.
template <typename Key>
struct RightStretch {
  const Key* keys;
  uint32_t begin, end;  // matches begin in [begin, end]
  uint32_t size;        // of the side
  const Key* staged;    // [begin, staged_end), or null
  uint32_t staged_end;

  __device__ Key KeyAt(uint32_t i) const {
    return staged != nullptr && i < staged_end ? staged[i - begin] : keys[i];
  }
  // Behind the last entry with the key of entry `i`.
  __device__ uint32_t EndOfEqual(uint32_t i, Key key) const {
    uint32_t step = 1, last = i;
    while (size - last > step && KeyAt(last + step) == key) {
      last += step;
      step *= 2;
    }
    // Entry `last` has the key; that of last + step, if it is there, is another.
    uint32_t most = size - last > step ? last + step : size;
    uint32_t least = last + 1;
    while (least < most) {
      const uint32_t middle = least + (most - least) / 2;
      if (KeyAt(middle) == key) {
        least = middle + 1;
      } else {
        most = middle;
      }
    }
    return least;
  }
};

// By a block. `tile` is the number of the first of the tile's entries.
template <int kGroups, typename Key>
__device__ inline TileMatches<kGroups> MatchTile(const JoinSide<Key>& left, uint32_t tile,
                                                 uint32_t count, const Key (&wanted)[kGroups],
                                                 const RightStretch<Key>& right) {
  TileMatches<kGroups> matches;
  const uint32_t lane = threadIdx.x % 32, begin = threadIdx.x / 32 * 32 * kGroups;
  if (begin >= count) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) matches.first[g] = matches.count[g] = 0;
    return matches;
  }
  if (right.staged != nullptr) {
    SearchTile(right.staged, right.end - right.begin, left.keys + tile + begin,
               min(count - begin, 32u * kGroups), lane, wanted, matches.first);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) matches.first[g] += right.begin;
  } else {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      matches.first[g] = LowerBoundIn(right.keys, right.begin, right.end, wanted[g]);
    }
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t i = matches.first[g];
    const bool there = begin + 32 * g + lane < count && i < right.size;
    const bool matched = there && right.KeyAt(i) == wanted[g];
    matches.count[g] = matched ? 1 : 0;
    if (matched && i + 1 < right.size && right.KeyAt(i + 1) == wanted[g]) {
      matches.count[g] = right.EndOfEqual(i + 1, wanted[g]) - i;
    }
  }
  return matches;
}

// The sum of a value of each thread, to all of the block.
__device__ inline uint64_t SumOfBlock(uint64_t value, uint64_t* shared) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kJoinAllLanes, value, apart);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  uint64_t sum = 0;
#pragma unroll
  for (int warp = 0; warp < kJoinWarps; ++warp) sum += shared[warp];
  return sum;
}

// A tile's pairs, where some entries have several matches: pair j is of the last entry whose
// `before` is at most j. In shared memory.
template <int kGroups>
struct TilePairs {
  static constexpr uint32_t kTile = TileMatches<kGroups>::kTile;

  uint64_t before[kTile];
  uint32_t first[kTile];

  // By the block; returns how many pairs there are.
  __device__ uint64_t Fill(const TileMatches<kGroups>& matches, uint64_t* shared_sums) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint32_t i = (warp * kGroups + g) * 32 + lane;
      before[i] = matches.count[g];
      first[i] = matches.first[g];
    }
    __syncthreads();
    // A thread's entries are neighbours now.
    uint64_t* const own = before + threadIdx.x * kGroups;
    uint64_t sum = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) sum += own[g];
    uint64_t up_to = sum;
    for (uint32_t apart = 1; apart < 32; apart *= 2) {
      const uint64_t less = __shfl_up_sync(kJoinAllLanes, up_to, apart);
      if (lane >= apart) up_to += less;
    }
    if (lane == 31) shared_sums[warp] = up_to;
    __syncthreads();
    uint64_t all = 0, at = up_to - sum;
    for (uint32_t w = 0; w < kJoinWarps; ++w) {
      if (w < warp) at += shared_sums[w];
      all += shared_sums[w];
    }
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint64_t count = own[g];
      own[g] = at;
      at += count;
    }
    __syncthreads();
    return all;
  }
  // The entry of pair j.
  __device__ uint32_t EntryOf(uint64_t j) const {
    uint32_t entry = 0;
    for (uint32_t step = kTile / 2; step != 0; step /= 2) {
      if (before[entry + step] <= j) entry += step;
    }
    return entry;
  }
};

}  // namespace cairn::gpu
