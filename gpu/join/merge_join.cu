#include "gpu/join/merge_join.h"

#include <algorithm>

#include "gpu/join/join_tile.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Entries of a thread, of keys of 32 bits; half as many of 64.
template <typename Key>
constexpr int kCountGroups = 32 / sizeof(Key);
template <typename Key>
constexpr int kPairGroups = 16 / sizeof(Key);

// Keys of the right side that a block has room for in shared memory: a quarter more than of the
// left one, and some for small tiles. Besides, up to three that are skipped in their first vector.
constexpr uint32_t RightRoom(uint32_t tile) {
  return (tile + tile / 4 + 128) / 4 * 4;
}

// Where each tile's matches begin; bounds[tiles] is where those of the last key do.
template <typename Key>
__global__ void FindTileBounds(JoinSide<Key> left, JoinSide<Key> right, uint32_t tile,
                               uint32_t tiles, uint32_t* bounds) {
  ForEachIndex(size_t{tiles} + 1, [=](size_t t) {
    const size_t i = min(t * tile, size_t{left.size} - 1);
    bounds[t] = LowerBoundIn(right.keys, 0u, right.size, left.keys[i]);
  });
}

// A tile and its stretch, with what a block has in shared memory.
template <int kGroups, typename Key>
struct JoinTile {
  static constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  static constexpr uint32_t kRoom = RightRoom(kTile);

  uint32_t number, begin, count;
  RightStretch<Key> right;

  __device__ JoinTile(const JoinSide<Key>& left, const JoinSide<Key>& right_side,
                      const uint32_t* bounds, uint32_t tile_number)
      : number(tile_number),
        begin(tile_number * kTile),
        count(min(kTile, left.size - tile_number * kTile)) {
    const uint32_t first = __ldg(bounds + number);
    // Keys that do not ascend may have theirs in any order.
    const uint32_t end = max(first, __ldg(bounds + number + 1));
    right = {right_side.keys, first, end, right_side.size, nullptr, 0};
  }
  // Begins to copy the right keys, where there is room for them.
  __device__ bool Stage(Key* shared) {
    const uint32_t end = min(right.end, right.size - 1) + 1;
    const uint32_t size = end > right.begin ? end - right.begin : 0;
    const Key* const from = right.keys + right.begin;
    const uint32_t phase = PhaseOf(from);
    if (size > kRoom) return false;
    CopyToShared(shared, from, size, phase);
    right.staged = shared + phase;
    right.staged_end = end;
    return true;
  }
  __device__ void LoadKeys(const JoinSide<Key>& left, Key (&keys)[kGroups]) const {
    const uint32_t first = threadIdx.x / 32 * 32 * kGroups + threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint32_t i = first + 32 * g;
      keys[g] = i < count ? __ldcs(left.keys + begin + i) : static_cast<Key>(~Key{0});
    }
  }
};

template <int kGroups, typename Key>
__global__ void __launch_bounds__(kJoinThreads)
    CountTiles(JoinSide<Key> left, JoinSide<Key> right, const uint32_t* bounds,
               unsigned long long* total) {
  using Tile = JoinTile<kGroups, Key>;
  __shared__ alignas(16) Key staged[Tile::kRoom + 16 / sizeof(Key)];
  __shared__ uint64_t sums[kJoinWarps];
  Tile tile(left, right, bounds, blockIdx.x);
  tile.Stage(staged);
  Key keys[kGroups];
  tile.LoadKeys(left, keys);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const auto matches = MatchTile(left, tile.begin, tile.count, keys, tile.right);
  uint64_t count = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) count += matches.count[g];
  const uint64_t all = SumOfBlock(count, sums);
  if (threadIdx.x == 0 && all != 0) atomicAdd(total, all);
}

// ---- Pairs: one pass, in which tiles learn of each other how many pairs come before theirs.

// What a tile says: in the highest two bits how much it knows, below them how many pairs there are.
constexpr uint64_t kOwnPairs = uint64_t{1} << 62;         // its own
constexpr uint64_t kPairsUpTo = uint64_t{2} << 62;        // those of all tiles up to it
constexpr uint64_t kMostPairs = (uint64_t{1} << 62) - 1;  // or more

__device__ uint64_t AddPairs(uint64_t a, uint64_t b) {
  return a + b < kMostPairs ? a + b : kMostPairs;
}

// Says how many pairs tile `tile` has, and returns how many come before them (Merrill and Garland,
// Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016). By a warp.
__device__ uint64_t PairsBefore(volatile uint64_t* said, uint32_t tile, uint64_t own, int lane) {
  own = AddPairs(own, 0);
  if (tile == 0) {
    if (lane == 0) said[0] = kPairsUpTo | own;
    return 0;
  }
  if (lane == 0) said[tile] = kOwnPairs | own;
  uint64_t before = 0;
  for (int64_t last = int64_t{tile} - 1;; last -= 32) {
    const int64_t at = last - lane;
    uint64_t heard = kPairsUpTo;
    do {
      if (at >= 0) heard = said[at];
    } while (__any_sync(kJoinAllLanes, heard >> 62 == 0));
    const unsigned knows_all = __ballot_sync(kJoinAllLanes, heard >> 62 == 2);
    const int stop = knows_all != 0 ? __ffs(static_cast<int>(knows_all)) - 1 : 31;
    uint64_t pairs = lane <= stop ? heard & kMostPairs : 0;
    for (int apart = 16; apart > 0; apart /= 2) {
      pairs = AddPairs(pairs, __shfl_xor_sync(kJoinAllLanes, pairs, apart));
    }
    before = AddPairs(before, pairs);
    if (knows_all != 0) break;
  }
  if (lane == 0) said[tile] = kPairsUpTo | AddPairs(before, own);
  return before;
}

// Pairs of a tile that its own block writes; others write the rest.
constexpr uint64_t kChunkPairs = 16384;

// What the blocks of one join share, in device memory.
struct JoinScratch {
  const uint32_t* bounds;
  volatile uint64_t* said;
  uint32_t* large;  // tiles of more pairs than a chunk
  uint32_t* large_count;
};

template <typename Key>
__device__ RowId RowOf(const JoinSide<Key>& side, uint32_t i) {
  return side.row_ids != nullptr ? __ldg(side.row_ids + i) : i;
}

// Writes pairs [first, end) of a tile to where they go from `base` on. By the block.
template <int kGroups, typename Key>
__device__ void WritePairs(const TilePairs<kGroups>& pairs, const JoinSide<Key>& left,
                           const JoinSide<Key>& right, uint32_t tile, uint64_t first, uint64_t end,
                           uint64_t base, const DevicePairs& out) {
  for (uint64_t j = first + threadIdx.x; j < end && base + j < out.capacity; j += kJoinThreads) {
    const uint32_t entry = pairs.EntryOf(j);
    const auto match = static_cast<uint32_t>(j - pairs.before[entry]);
    __stcs(out.left + base + j, RowOf(left, tile + entry));
    __stcs(out.right + base + j, RowOf(right, pairs.first[entry] + match));
  }
}

// Shared memory of a block that writes pairs.
template <int kGroups, typename Key>
union PairMemory {
  static constexpr uint32_t kRoom = JoinTile<kGroups, Key>::kRoom;
  struct {
    alignas(16) Key keys[kRoom + 16 / sizeof(Key)];
    alignas(16) RowId right[kRoom + 4];
    alignas(16) RowId left[TileMatches<kGroups>::kTile + 4];
  } staged;
  TilePairs<kGroups> pairs;  // once those are read
};

template <int kGroups, typename Key>
__global__ void __launch_bounds__(kJoinThreads)
    JoinTiles(JoinSide<Key> left, JoinSide<Key> right, JoinScratch scratch, DevicePairs out) {
  using Tile = JoinTile<kGroups, Key>;
  __shared__ PairMemory<kGroups, Key> memory;
  __shared__ uint64_t sums[kJoinWarps];
  __shared__ uint64_t pairs_before;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Tile tile(left, right, scratch.bounds, blockIdx.x);
  const bool staged = tile.Stage(memory.staged.keys);
  asm volatile("cp.async.commit_group;" ::: "memory");
  // Row ids are on their way while keys are searched.
  const RowId* left_rows = left.row_ids == nullptr ? nullptr : left.row_ids + tile.begin;
  const RowId* right_rows = right.row_ids == nullptr ? nullptr : right.row_ids + tile.right.begin;
  if (staged && left_rows != nullptr) {
    const uint32_t phase = PhaseOf(left_rows);
    CopyToShared(memory.staged.left, left_rows, tile.count, phase);
    left_rows = memory.staged.left + phase;
  }
  if (staged && right_rows != nullptr) {
    const uint32_t phase = PhaseOf(right_rows);
    CopyToShared(memory.staged.right, right_rows, tile.right.staged_end - tile.right.begin, phase);
    right_rows = memory.staged.right + phase;
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  Key keys[kGroups];
  tile.LoadKeys(left, keys);
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  const auto matches = MatchTile(left, tile.begin, tile.count, keys, tile.right);

  uint64_t own = 0;
  bool several = false;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    own += matches.count[g];
    several = several || matches.count[g] > 1;
  }
  several = __syncthreads_or(several ? 1 : 0) != 0;
  const uint64_t all = SumOfBlock(own, sums);
  if (warp == 0) {
    const uint64_t before = PairsBefore(scratch.said, blockIdx.x, all, static_cast<int>(lane));
    if (lane == 0) {
      pairs_before = before;
      if (blockIdx.x == gridDim.x - 1) *out.total = AddPairs(before, all);
      if (several && all > kChunkPairs)
        scratch.large[atomicAdd(scratch.large_count, 1)] = blockIdx.x;
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const uint64_t base = pairs_before;
  if (base >= out.capacity) return;
  if (several) {
    memory.pairs.Fill(matches, sums);
    WritePairs(memory.pairs, left, right, tile.begin, 0, min(all, kChunkPairs), base, out);
    return;
  }
  uint64_t at = base;
  for (uint32_t w = 0; w < warp; ++w) at += sums[w];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const unsigned matched = __ballot_sync(kJoinAllLanes, matches.count[g] != 0);
    const uint64_t j = at + __popc(matched & ((1u << lane) - 1));
    at += __popc(matched);
    if (matches.count[g] == 0 || j >= out.capacity) continue;
    const uint32_t i = warp * 32 * kGroups + 32 * g + lane;
    const uint32_t match = matches.first[g] - tile.right.begin;
    __stcs(out.left + j, left_rows != nullptr ? left_rows[i] : tile.begin + i);
    __stcs(out.right + j, right_rows != nullptr ? right_rows[match] : matches.first[g]);
  }
}

// What is left of large tiles: chunk c of the l-th of them is block l + c's.
template <int kGroups, typename Key>
__global__ void __launch_bounds__(kJoinThreads)
    JoinLargeTiles(JoinSide<Key> left, JoinSide<Key> right, JoinScratch scratch, DevicePairs out) {
  using Tile = JoinTile<kGroups, Key>;
  __shared__ TilePairs<kGroups> pairs;
  __shared__ uint64_t sums[kJoinWarps];
  __shared__ uint32_t mine[kJoinThreads];
  __shared__ uint32_t mine_count;
  const uint32_t count = *scratch.large_count;
  for (uint32_t first = 0; first < count; first += kJoinThreads) {
    __syncthreads();
    if (threadIdx.x == 0) mine_count = 0;
    __syncthreads();
    const uint32_t l = first + threadIdx.x;
    if (l < count) {
      const uint32_t number = scratch.large[l];
      const uint64_t before = number == 0 ? 0 : scratch.said[number - 1] & kMostPairs;
      const uint64_t all = (scratch.said[number] & kMostPairs) - before;
      const uint32_t chunk = (blockIdx.x + gridDim.x - l % gridDim.x) % gridDim.x;
      if (before < out.capacity && (uint64_t{chunk} + 1) * kChunkPairs < all) {
        mine[atomicAdd(&mine_count, 1)] = l;
      }
    }
    __syncthreads();
    for (uint32_t m = 0; m < mine_count; ++m) {
      const uint32_t number = scratch.large[mine[m]];
      const uint64_t base = number == 0 ? 0 : scratch.said[number - 1] & kMostPairs;
      Tile tile(left, right, scratch.bounds, number);
      Key keys[kGroups];
      tile.LoadKeys(left, keys);
      const auto matches = MatchTile(left, tile.begin, tile.count, keys, tile.right);
      const uint64_t all = pairs.Fill(matches, sums);
      uint64_t chunk = (blockIdx.x + gridDim.x - mine[m] % gridDim.x) % gridDim.x + 1;
      for (; chunk * kChunkPairs < all && base + chunk * kChunkPairs < out.capacity;
           chunk += gridDim.x) {
        WritePairs(pairs, left, right, tile.begin, chunk * kChunkPairs,
                   min(all, (chunk + 1) * kChunkPairs), base, out);
      }
      __syncthreads();
    }
  }
}

constexpr uint32_t TilesOf(uint32_t size, uint32_t tile) {
  return static_cast<uint32_t>((uint64_t{size} + tile - 1) / tile);
}

template <typename Key>
absl::StatusOr<DeviceBuffer<uint32_t>> TileBounds(const JoinSide<Key>& left,
                                                  const JoinSide<Key>& right, uint32_t tile,
                                                  cudaStream_t stream) {
  const uint32_t tiles = TilesOf(left.size, tile);
  DeviceBuffer<uint32_t> bounds;
  RETURN_IF_ERROR(Resize(&bounds, size_t{tiles} + 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindTileBounds", SimpleShape(bounds.size()), stream,
                               FindTileBounds<Key>, left, right, tile, tiles, bounds.data());
  return bounds;
}

}  // namespace

template <typename Key>
absl::Status EnqueueCountJoin(const JoinSide<Key>& left, const JoinSide<Key>& right,
                              uint64_t* total, cudaStream_t stream) {
  constexpr int kGroups = kCountGroups<Key>;
  constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(total, 0, sizeof(*total), stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> bounds, TileBounds(left, right, kTile, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("CountTiles", LaunchShape{TilesOf(left.size, kTile), kJoinThreads},
                               stream, CountTiles<kGroups, Key>, left, right, bounds.data(),
                               reinterpret_cast<unsigned long long*>(total));
  return absl::OkStatus();
}

template <typename Key>
absl::Status EnqueueJoin(const JoinSide<Key>& left, const JoinSide<Key>& right,
                         const DevicePairs& pairs, cudaStream_t stream) {
  constexpr int kGroups = kPairGroups<Key>;
  constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  const uint32_t tiles = TilesOf(left.size, kTile);
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> bounds, TileBounds(left, right, kTile, stream));
  DeviceBuffer<uint64_t> said;
  DeviceBuffer<uint32_t> large;  // their count, and then they
  RETURN_IF_ERROR(Resize(&said, tiles, stream));
  RETURN_IF_ERROR(Resize(&large, size_t{tiles} + 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(said.data(), 0, said.bytes(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(large.data(), 0, sizeof(uint32_t), stream));
  const JoinScratch scratch = {bounds.data(), said.data(), large.data() + 1, large.data()};
  CAIRN_RETURN_IF_LAUNCH_FAILS("JoinTiles", LaunchShape{tiles, kJoinThreads}, stream,
                               JoinTiles<kGroups, Key>, left, right, scratch, pairs);
  constexpr uint64_t kMostBlocks = 1024;
  const uint64_t blocks = std::min(kMostBlocks, pairs.capacity / kChunkPairs + 1);
  if (pairs.capacity <= kChunkPairs) return absl::OkStatus();
  CAIRN_RETURN_IF_LAUNCH_FAILS("JoinLargeTiles",
                               LaunchShape{static_cast<unsigned>(blocks), kJoinThreads}, stream,
                               JoinLargeTiles<kGroups, Key>, left, right, scratch, pairs);
  return absl::OkStatus();
}

#define CAIRN_INSTANTIATE(Key)                                                                  \
  template absl::Status EnqueueJoin(const JoinSide<Key>&, const JoinSide<Key>&,                 \
                                    const DevicePairs&, cudaStream_t);                          \
  template absl::Status EnqueueCountJoin(const JoinSide<Key>&, const JoinSide<Key>&, uint64_t*, \
                                         cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
