#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/where/row_list.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

inline constexpr int kListThreads = 256;
static_assert(kListThreads * 32 == kTileRows);

// How many rows the blocks before this one have, of which each has told how many it has itself, or,
// once it knew, how many all up to it have: Merrill and Garland, "Single-pass Parallel Prefix Scan
// with Decoupled Look-back" (2016). Blocks start in the order of their numbers. Called by one warp.
__device__ inline uint32_t RowsBeforeBlock(uint64_t* states, uint32_t rows) {
  constexpr uint64_t kOwn = uint64_t{1} << 32, kUpTo = uint64_t{2} << 32;
  volatile uint64_t* const told = states;
  const uint32_t lane = threadIdx.x % 32;
  uint32_t before = 0;
  if (blockIdx.x > 0) {
    if (lane == 0) told[blockIdx.x] = kOwn | rows;
    for (int64_t block = int64_t{blockIdx.x} - 1 - lane;; block -= 32) {
      uint64_t state;
      do {
        state = block >= 0 ? told[block] : kUpTo;
      } while (__any_sync(0xffffffffu, state == 0));
      const uint32_t up_to = __ballot_sync(0xffffffffu, state >= kUpTo);
      const bool counts =
          up_to == 0 || lane < static_cast<uint32_t>(__ffs(static_cast<int>(up_to)));
      before += __reduce_add_sync(0xffffffffu, counts ? static_cast<uint32_t>(state) : 0);
      if (up_to != 0) break;
    }
  }
  if (lane == 0) told[blockIdx.x] = kUpTo | (before + rows);
  return before;
}

// Lists a block's rows: bit b of words[i] is row first + (i * kListThreads + threadIdx.x) * 32 + b.
// They are put in order in shared memory, a tile at a time, and written side by side. All threads
// of the block call it, once; blocks have the rows in the order of their numbers.
template <int kWords>
__device__ inline void ListBlockRows(const uint32_t (&words)[kWords], RowId first,
                                     const RowList& list) {
  constexpr int kWarps = kListThreads / 32;
  __shared__ uint16_t listed[kTileRows];
  __shared__ uint32_t warp_rows[kWords][kWarps];
  __shared__ uint32_t rows_before;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t place[kWords];  // of the thread's first row, in its warp, then in its tile
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const uint32_t count = __popc(words[i]);
    uint32_t sum = count;
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) warp_rows[i][warp] = sum;
    place[i] = sum - count;
  }
  __syncthreads();
  uint32_t tile_rows[kWords], rows = 0;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    tile_rows[i] = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) place[i] += warp_rows[i][w];
      tile_rows[i] += warp_rows[i][w];
    }
    rows += tile_rows[i];
  }
  if (warp == 0) {
    const uint32_t before = RowsBeforeBlock(list.states, rows);
    if (lane == 0) {
      rows_before = before;
      if (blockIdx.x == gridDim.x - 1) *list.total = uint64_t{before} + rows;
    }
  }
  uint64_t to = 0;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if (i > 0) __syncthreads();
    uint32_t at = place[i];
    for (uint32_t word = words[i]; word != 0; word &= word - 1) {
      listed[at++] = static_cast<uint16_t>(threadIdx.x * 32 + __ffs(static_cast<int>(word)) - 1);
    }
    __syncthreads();
    if (i == 0) to = rows_before;
    const RowId tile_first = first + i * kTileRows;
    for (uint32_t k = threadIdx.x; k < tile_rows[i]; k += kListThreads) {
      if (to + k < list.capacity) __stcs(list.rows + to + k, tile_first + listed[k]);
    }
    to += tile_rows[i];
  }
}

}  // namespace cairn::gpu
