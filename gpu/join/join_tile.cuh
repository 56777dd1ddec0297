#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cairn/types.h"
#include "gpu/join/merge_join.h"

// A block of threads joins a tile of the left side with its possible matches on the right side.

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

// Copies from[i] to shared[phase + i], asynchronously, by the whole block. `phase` is the position
// of `from` within its 16 bytes (PhaseOf), and `shared` must be aligned to 16.
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

// Reads a key at an address in shared memory. The compiler cannot infer the memory of a pointer to
// a range that may be in either.
__device__ inline uint32_t ReadShared(uint32_t address, uint32_t) {
  uint32_t key;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(key) : "r"(address));
  return key;
}
__device__ inline uint64_t ReadShared(uint32_t address, uint64_t) {
  uint64_t key;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(key) : "r"(address));
  return key;
}

// Lower bounds, as addresses, of a warp's ascending keys among `size` keys that start at an address
// in shared memory. Lane l has the keys 32 * g + l of `count` >= 1 keys from `own` on. First finds
// those of every 32nd key, then those of all keys. All windows of the second search are as long as
// the longest interval of the first, so that all lanes execute the same steps: an addition, a read,
// a comparison.
template <int kGroups, typename Key>
__device__ inline void SearchTile(uint32_t keys, uint32_t size, const Key* own, uint32_t count,
                                  uint32_t lane, const Key (&wanted)[kGroups],
                                  uint32_t (&found)[kGroups]) {
  constexpr uint32_t kStep = sizeof(Key);
  const auto first_step = [](uint32_t n) { return 1u << (31 - __clz(static_cast<int>(n))); };
  const auto before = [](uint32_t address) { return ReadShared(address - kStep, Key{}); };
  uint32_t bound = keys;
  if (size != 0) {
    const Key fence = own[min(lane * 32, count - 1)];
    uint32_t step = first_step(size);
    if (before(keys + step * kStep) < fence) bound += (size - step + 1) * kStep;
    for (step = step / 2 * kStep; step >= kStep; step /= 2) {
      if (before(bound + step) < fence) bound += step;
    }
  }
  uint32_t longest = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t begin = __shfl_sync(kJoinAllLanes, bound, g);
    const uint32_t end = __shfl_sync(kJoinAllLanes, bound, g + 1);
    if (end > begin) longest = max(longest, end - begin);  // false only if keys do not ascend
    found[g] = begin;
  }
  if (longest == 0) return;
  const uint32_t most = longest / kStep, last = keys + size * kStep - longest;
  uint32_t step = first_step(most);
  const uint32_t jump = (most - step + 1) * kStep;
  step *= kStep;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    found[g] = min(found[g], last);
    if (before(found[g] + step) < wanted[g]) found[g] += jump;
  }
  for (step /= 2; step >= kStep; step /= 2) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint32_t next = found[g] + step;
      if (before(next) < wanted[g]) found[g] = next;
    }
  }
}

// A tile's matches, in the registers of a block: lane l of warp w has the entries w * 32 * kGroups
// + 32 * g + l of the tile.
template <int kGroups>
struct TileMatches {
  static constexpr uint32_t kTile = kJoinThreads * kGroups;

  uint32_t first[kGroups];  // the first match, an entry of the right side
  uint32_t count[kGroups];
};

// The range of the right side in which a tile's matches begin.
template <typename Key>
struct RightStretch {
  const Key* keys;
  uint32_t begin, end;   // matches begin in [begin, end]
  uint32_t size;         // of the right side
  bool is_staged;        // whether all of [begin, end] are in shared memory
  uint32_t staged;       // their address there
  uint32_t staged_size;  // their number: all, or one less if `end` is `size`

  // Past the last entry with the key; entry `i` must have it.
  __device__ uint32_t EndOfEqual(uint32_t i, Key key) const {
    return EndOfEqual(i, size, 1u, key, [&](uint32_t at) { return keys[at]; });
  }
  // The same for an entry at an address in shared memory.
  __device__ uint32_t EndOfStaged(uint32_t address, Key key) const {
    constexpr uint32_t kStep = sizeof(Key);
    const uint32_t staged_end = staged + staged_size * kStep;
    const uint32_t end = EndOfEqual(address, staged_end, kStep, key,
                                    [](uint32_t at) { return ReadShared(at, Key{}); });
    if (end == staged_end) return EndOfEqual(begin + staged_size - 1, key);
    return begin + (end - staged) / kStep;
  }

 private:
  // Searches in steps that double, and then between the last two.
  template <typename Read>
  __device__ static uint32_t EndOfEqual(uint32_t i, uint32_t end, uint32_t unit, Key key,
                                        Read read) {
    uint32_t step = unit, last = i;
    while (end - last > step && read(last + step) == key) {
      last += step;
      step *= 2;
    }
    uint32_t least = last + unit, most = end - last > step ? last + step : end;
    while (least < most) {
      const uint32_t middle = least + (most - least) / unit / 2 * unit;
      if (read(middle) == key) {
        least = middle + unit;
      } else {
        most = middle;
      }
    }
    return least;
  }
};

// Called by a block. `tile` is the number of the tile's first entry.
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
  if (!right.is_staged) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const Key key = wanted[g];
      const uint32_t i = LowerBoundIn(right.keys, right.begin, right.end, key);
      const bool there = begin + 32 * g + lane < count && i < right.size;
      matches.first[g] = i;
      matches.count[g] = there && right.keys[i] == key ? right.EndOfEqual(i, key) - i : 0;
    }
    return matches;
  }
  uint32_t found[kGroups];
  SearchTile(right.staged, right.end - right.begin, left.keys + tile + begin,
             min(count - begin, 32u * kGroups), lane, wanted, found);
  const uint32_t staged_end = right.staged + right.staged_size * sizeof(Key);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const Key key = wanted[g];
    const uint32_t at = found[g], next = at + sizeof(Key);
    matches.first[g] = right.begin + (at - right.staged) / sizeof(Key);
    const bool there = begin + 32 * g + lane < count && at < staged_end;
    const bool matched = there && ReadShared(at, Key{}) == key;
    matches.count[g] = matched ? 1 : 0;
    // The next entry may be the last one, which is not staged.
    if (!matched || (next < staged_end && ReadShared(next, Key{}) != key)) continue;
    matches.count[g] = right.EndOfStaged(at, key) - matches.first[g];
  }
  return matches;
}

// Sums a value of each warp, given in its lane 0, and returns the sum to all threads of the block.
__device__ inline uint64_t SumOfWarps(uint64_t value, uint64_t* shared) {
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  uint64_t sum = 0;
#pragma unroll
  for (int warp = 0; warp < kJoinWarps; ++warp) sum += shared[warp];
  return sum;
}
__device__ inline uint64_t SumOfBlock(uint64_t value, uint64_t* shared) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kJoinAllLanes, value, apart);
  return SumOfWarps(value, shared);
}

// A tile's pairs, if some entries have several matches: pair j belongs to the last entry whose
// `before` is at most j. Stored in shared memory.
template <int kGroups>
struct TilePairs {
  static constexpr uint32_t kTile = TileMatches<kGroups>::kTile;

  uint64_t before[kTile];
  uint32_t first[kTile];

  // Called by the block; returns the number of pairs.
  __device__ uint64_t Fill(const TileMatches<kGroups>& matches, uint64_t* shared_sums) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint32_t i = (warp * kGroups + g) * 32 + lane;
      before[i] = matches.count[g];
      first[i] = matches.first[g];
    }
    __syncthreads();
    // From here on, a thread's entries are consecutive.
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

template <typename Key>
__device__ inline RowId RowOf(const JoinSide<Key>& side, uint32_t i) {
  return side.row_ids != nullptr ? __ldcs(side.row_ids + i) : i;
}

// Writes pairs [first, end) of a tile to the output, starting at `base`. Called by the block.
template <int kGroups, typename Key>
__device__ void WritePairs(const TilePairs<kGroups>& pairs, const JoinSide<Key>& left,
                           const JoinSide<Key>& right, uint32_t tile, uint64_t first, uint64_t end,
                           uint64_t base, const DevicePairs& out) {
  end = min(end, out.capacity - base);
  constexpr int kTogether = 4;  // pairs per thread that are in flight together
  for (uint64_t j = first + threadIdx.x; j < end; j += kTogether * kJoinThreads) {
    RowId rows[kTogether], others[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint64_t pair = min(j + k * kJoinThreads, end - 1);
      const uint32_t entry = pairs.EntryOf(pair);
      rows[k] = RowOf(left, tile + entry);
      others[k] =
          RowOf(right, pairs.first[entry] + static_cast<uint32_t>(pair - pairs.before[entry]));
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const uint64_t pair = j + k * kJoinThreads;
      if (pair >= end) continue;
      __stcs(out.left + base + pair, rows[k]);
      __stcs(out.right + base + pair, others[k]);
    }
  }
}

}  // namespace cairn::gpu
