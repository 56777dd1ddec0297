#include "gpu/join/merge_join.h"

#include "gpu/join/join_marks.cuh"
#include "gpu/join/join_tile.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Entries per thread: 8, or 4 for 64-bit keys.
template <typename Key>
constexpr int kJoinGroups = 32 / sizeof(Key);

// The beginning of each tile's matches; bounds[tiles] is the beginning of the last key's matches.
template <typename Key>
__global__ void FindTileBounds(JoinSide<Key> left, JoinSide<Key> right, uint32_t tile,
                               uint32_t tiles, uint32_t* bounds) {
  ForEachIndex(size_t{tiles} + 1, [=](size_t t) {
    const size_t i = min(t * tile, size_t{left.size} - 1);
    bounds[t] = LowerBoundIn(right.keys, 0u, right.size, left.keys[i]);
  });
}

// A tile and its range of the right side, with the block's data in shared memory.
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
    // Keys that do not ascend may have their bounds in any order.
    const uint32_t end = max(first, __ldg(bounds + number + 1));
    right = {right_side.keys, first, end, right_side.size, false, 0, 0};
  }
  // Starts copying the right keys if they fit.
  __device__ void Stage(Key* shared) {
    const uint32_t end = min(right.end, right.size - 1) + 1;
    const uint32_t size = end > right.begin ? end - right.begin : 0;
    const Key* const from = right.keys + right.begin;
    const uint32_t phase = PhaseOf(from);
    if (size > kRoom) return;
    CopyToShared(shared, from, size, phase);
    right.is_staged = true;
    right.staged = static_cast<uint32_t>(__cvta_generic_to_shared(shared + phase));
    right.staged_size = size;
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

// ---- Matches and their positions. The pairs of a tile are written after those of all tiles have
// been counted, using only marks, without reading the keys again. Exceptions are tiles in which an
// entry has several matches, or whose right keys did not fit.

// Data shared by the kernels of one join, in device memory.
template <int kGroups>
struct JoinScratch {
  const uint32_t* bounds;
  // For each tile, the pairs of all tiles up to and including it; initially its own.
  uint64_t* pairs_up_to;
  TileMarks<kGroups>* marks;
  uint32_t* others;  // tiles whose marks are insufficient
  uint32_t* others_count;
};

// Marks a tile's matches; their number is `all`. `flags`, in shared memory, must be zero.
template <int kGroups, typename Key>
__device__ void MarkTile(const JoinSide<Key>& left, const JoinTile<kGroups, Key>& tile,
                         const Key (&keys)[kGroups], const TileMatches<kGroups>& matches,
                         uint64_t all, uint8_t* flags, uint64_t* sums, TileMarks<kGroups>* marks) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t matched = 0;  // lane g has the bits of group g
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const bool hit = matches.count[g] != 0;
    const unsigned hits = __ballot_sync(kJoinAllLanes, hit);
    if (lane == g) matched = hits;
    if (hit) flags[matches.first[g] - tile.right.begin] = 1;
  }
  if (lane < kGroups) marks->matched[warp * kGroups + lane] = matched;
  __syncthreads();
  uint32_t distinct = 0;
  for (uint32_t word = warp; word < TileMarks<kGroups>::kRightWords; word += kJoinWarps) {
    const unsigned bits = __ballot_sync(kJoinAllLanes, flags[32 * word + lane] != 0);
    distinct += __popc(bits);
    if (lane == 0) marks->right[word] = bits;
  }
  const bool one_to_one = SumOfWarps(distinct, sums) == all;
  if (threadIdx.x == 0) marks->known = one_to_one ? MarksKnown::kOneToOne : MarksKnown::kAll;
  if (one_to_one) return;
  uint32_t is_new = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    Key before = __shfl_up_sync(kJoinAllLanes, keys[g], 1);
    if (g > 0) {
      const Key last = __shfl_sync(kJoinAllLanes, keys[g > 0 ? g - 1 : 0], 31);
      if (lane == 0) before = last;
    } else if (lane == 0 && warp != 0 && matches.count[0] != 0) {
      before = left.keys[tile.begin + warp * 32 * kGroups - 1];
    }
    const bool has_before = g > 0 || lane != 0 || warp != 0;
    const bool first = matches.count[g] != 0 && !(has_before && before == keys[g]);
    const unsigned firsts = __ballot_sync(kJoinAllLanes, first);
    if (lane == g) is_new = firsts;
  }
  if (lane < kGroups) marks->is_new[warp * kGroups + lane] = is_new;
}

template <int kGroups, bool kMark, typename Key>
__global__ void __launch_bounds__(kJoinThreads)
    MatchTiles(JoinSide<Key> left, JoinSide<Key> right, JoinScratch<kGroups> scratch,
               unsigned long long* total) {
  using Tile = JoinTile<kGroups, Key>;
  __shared__ alignas(16) Key staged[Tile::kRoom + 16 / sizeof(Key)];
  __shared__ alignas(16) uint8_t flags[kMark ? Tile::kRoom : 16];
  __shared__ uint64_t sums[kJoinWarps];
  Tile tile(left, right, scratch.bounds, blockIdx.x);
  tile.Stage(staged);
  Key keys[kGroups];
  tile.LoadKeys(left, keys);
  if constexpr (kMark) {
    for (uint32_t i = threadIdx.x; i < Tile::kRoom / 16; i += kJoinThreads) {
      reinterpret_cast<uint4*>(flags)[i] = uint4{0, 0, 0, 0};
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  const auto matches = MatchTile(left, tile.begin, tile.count, keys, tile.right);
  bool suffice = tile.right.is_staged;
  uint32_t matched = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    suffice = suffice && matches.count[g] <= 1;
    matched += matches.count[g] != 0 ? 1 : 0;
  }
  suffice = __syncthreads_and(suffice ? 1 : 0) != 0;
  uint64_t all = 0;
  if (suffice) {
    all = SumOfWarps(__reduce_add_sync(kJoinAllLanes, matched), sums);
  } else {
    uint64_t own = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) own += matches.count[g];
    all = SumOfBlock(own, sums);
  }
  if constexpr (!kMark) {
    if (threadIdx.x == 0 && all != 0) atomicAdd(total, all);
  } else {
    TileMarks<kGroups>* const marks = scratch.marks + blockIdx.x;
    if (threadIdx.x == 0) {
      scratch.pairs_up_to[blockIdx.x] = all;
      if (!suffice) marks->known = MarksKnown::kTooLittle;
      if (!suffice && all != 0) scratch.others[atomicAdd(scratch.others_count, 1)] = blockIdx.x;
    }
    if (suffice && all != 0) MarkTile(left, tile, keys, matches, all, flags, sums, marks);
  }
}

// Writes the pairs of tiles whose marks are sufficient.
template <int kGroups, typename Key>
__global__ void __launch_bounds__(kJoinThreads, 8)
    WriteMarked(JoinSide<Key> left, JoinSide<Key> right, JoinScratch<kGroups> scratch,
                DevicePairs out) {
  using Marks = TileMarks<kGroups>;
  __shared__ RankedMarks<Marks::kLeftWords> matched, is_new;
  __shared__ RankedMarks<Marks::kRightWords> matches;
  __shared__ RowId right_rows[Marks::kTile];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x;
  const Marks& marks = scratch.marks[tile];
  const uint64_t base = tile == 0 ? 0 : scratch.pairs_up_to[tile - 1];
  if (scratch.pairs_up_to[tile] == base || base >= out.capacity) return;
  const MarksKnown known = marks.known;
  if (known == MarksKnown::kTooLittle) return;
  const uint32_t first_match = scratch.bounds[tile];
  if (warp == 0) matched.Load(marks.matched, lane);
  if (warp == 1 && known == MarksKnown::kAll) is_new.Load(marks.is_new, lane);
  if (warp == 2) matches.Load(marks.right, lane);
  __syncthreads();
  RowId rows[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t word = warp * kGroups + g;
    if (matched.Has(word, lane)) rows[g] = RowOf(left, tile * Marks::kTile + 32 * word + lane);
  }
  constexpr uint32_t kSteps = (Marks::kRightWords + kJoinWarps - 1) / kJoinWarps;
  RowId found[kSteps];
#pragma unroll
  for (uint32_t i = 0; i < kSteps; ++i) {
    const uint32_t word = i * kJoinWarps + warp;
    if (word < Marks::kRightWords && matches.Has(word, lane)) {
      found[i] = RowOf(right, first_match + 32 * word + lane);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kSteps; ++i) {
    const uint32_t word = i * kJoinWarps + warp;
    if (word < Marks::kRightWords && matches.Has(word, lane)) {
      right_rows[matches.Before(word, lane)] = found[i];
    }
  }
  __syncthreads();
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t word = warp * kGroups + g;
    const uint64_t j = base + matched.Before(word, lane);
    if (!matched.Has(word, lane) || j >= out.capacity) continue;
    uint32_t match = matched.Before(word, lane);
    if (known == MarksKnown::kAll) {
      match = is_new.Before(word, lane) + (is_new.Has(word, lane) ? 1 : 0) - 1;
    }
    __stcs(out.left + j, rows[g]);
    // If keys do not ascend, there may be no such entry.
    __stcs(out.right + j, right_rows[min(match, Marks::kTile - 1)]);
  }
}

// ---- The other tiles: chunk c of the l-th of them is processed by block l + c.

constexpr uint64_t kChunkPairs = 16384;

template <int kGroups, typename Key>
__global__ void __launch_bounds__(kJoinThreads)
    WriteOthers(JoinSide<Key> left, JoinSide<Key> right, JoinScratch<kGroups> scratch,
                DevicePairs out) {
  using Tile = JoinTile<kGroups, Key>;
  __shared__ union {
    alignas(16) Key staged[Tile::kRoom + 16 / sizeof(Key)];
    TilePairs<kGroups> pairs;  // used after the keys are read
  } memory;
  __shared__ uint64_t sums[kJoinWarps];
  __shared__ uint32_t mine[kJoinThreads];
  __shared__ uint32_t mine_count;
  const uint32_t count = *scratch.others_count;
  // The first chunk of the l-th tile that this block processes.
  const auto first_chunk = [](uint32_t l) {
    return (blockIdx.x + gridDim.x - l % gridDim.x) % gridDim.x;
  };
  const auto pairs_before = [&](uint32_t number) -> uint64_t {
    return number == 0 ? 0 : scratch.pairs_up_to[number - 1];
  };
  for (uint32_t first = 0; first < count; first += kJoinThreads) {
    __syncthreads();
    if (threadIdx.x == 0) mine_count = 0;
    __syncthreads();
    if (const uint32_t l = first + threadIdx.x; l < count) {
      const uint32_t number = scratch.others[l];
      const uint64_t before = pairs_before(number);
      const uint64_t all = scratch.pairs_up_to[number] - before;
      const uint64_t from = first_chunk(l) * kChunkPairs;
      if (from < all && before < out.capacity && from < out.capacity - before) {
        mine[atomicAdd(&mine_count, 1)] = l;
      }
    }
    __syncthreads();
    for (uint32_t m = 0; m < mine_count; ++m) {
      const uint32_t number = scratch.others[mine[m]];
      const uint64_t base = pairs_before(number);
      Tile tile(left, right, scratch.bounds, number);
      tile.Stage(memory.staged);
      Key keys[kGroups];
      tile.LoadKeys(left, keys);
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
      const auto matches = MatchTile(left, tile.begin, tile.count, keys, tile.right);
      __syncthreads();
      const uint64_t all = memory.pairs.Fill(matches, sums);
      for (uint64_t chunk = first_chunk(mine[m]); chunk * kChunkPairs < all; chunk += gridDim.x) {
        if (chunk * kChunkPairs >= out.capacity - base) break;
        WritePairs(memory.pairs, left, right, tile.begin, chunk * kChunkPairs,
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
  if (right.size > left.size) return EnqueueCountJoin(right, left, total, stream);
  constexpr int kGroups = kJoinGroups<Key>;
  constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(total, 0, sizeof(*total), stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> bounds, TileBounds(left, right, kTile, stream));
  JoinScratch<kGroups> scratch = {};
  scratch.bounds = bounds.data();
  CAIRN_RETURN_IF_LAUNCH_FAILS("MatchTiles", LaunchShape{TilesOf(left.size, kTile), kJoinThreads},
                               stream, MatchTiles<kGroups, false, Key>, left, right, scratch,
                               reinterpret_cast<unsigned long long*>(total));
  return absl::OkStatus();
}

template <typename Key>
absl::Status EnqueueJoin(const JoinSide<Key>& left, const JoinSide<Key>& right,
                         const DevicePairs& pairs, cudaStream_t stream) {
  // Tiles of the longer side have few possible matches on the other side.
  if (right.size > left.size) {
    return EnqueueJoin(right, left, {pairs.right, pairs.left, pairs.capacity, pairs.total}, stream);
  }
  constexpr int kGroups = kJoinGroups<Key>;
  constexpr uint32_t kTile = TileMatches<kGroups>::kTile;
  const uint32_t tiles = TilesOf(left.size, kTile);
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> bounds, TileBounds(left, right, kTile, stream));
  DeviceBuffer<uint64_t> pairs_up_to;
  DeviceBuffer<TileMarks<kGroups>> marks;
  DeviceBuffer<uint32_t> others;  // their number, followed by the tiles
  RETURN_IF_ERROR(Resize(&pairs_up_to, tiles, stream));
  RETURN_IF_ERROR(Resize(&marks, tiles, stream));
  RETURN_IF_ERROR(Resize(&others, size_t{tiles} + 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(others.data(), 0, sizeof(uint32_t), stream));
  const JoinScratch<kGroups> scratch = {bounds.data(), pairs_up_to.data(), marks.data(),
                                        others.data() + 1, others.data()};
  const LaunchShape shape = {tiles, kJoinThreads};
  CAIRN_RETURN_IF_LAUNCH_FAILS("MatchTiles", shape, stream, MatchTiles<kGroups, true, Key>, left,
                               right, scratch, nullptr);
  RETURN_IF_ERROR(InclusiveScan(pairs_up_to.data(), pairs_up_to.data(), tiles,
                                ::cuda::std::plus<uint64_t>(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(pairs.total, pairs_up_to.data() + tiles - 1,
                                             sizeof(uint64_t), cudaMemcpyDeviceToDevice, stream));
  if (pairs.capacity == 0) return absl::OkStatus();
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteMarked", shape, stream, WriteMarked<kGroups, Key>, left, right,
                               scratch, pairs);
  constexpr unsigned kOtherBlocks = 1024;
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteOthers", LaunchShape{kOtherBlocks, kJoinThreads}, stream,
                               WriteOthers<kGroups, Key>, left, right, scratch, pairs);
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
