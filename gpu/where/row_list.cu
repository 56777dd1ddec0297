#include "gpu/where/row_list.h"

#include <algorithm>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "gpu/where/where_view.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kTileThreads = 256;
constexpr uint32_t kTileWords = kTileRows / 32;
static_assert(kTileWords == kTileThreads);

// One warp per tile.
__global__ void __launch_bounds__(kTileThreads)
    CountTileBits(const uint4* bitmap, uint64_t tiles, uint64_t* counts) {
  const uint64_t tile = (uint64_t{blockIdx.x} * kTileThreads + threadIdx.x) / 32;
  if (tile >= tiles) return;
  uint32_t count = 0;
#pragma unroll
  for (uint32_t i = 0; i < kTileWords / 4 / 32; ++i) {
    const uint4 word = bitmap[tile * (kTileWords / 4) + i * 32 + threadIdx.x % 32];
    count += __popc(word.x) + __popc(word.y) + __popc(word.z) + __popc(word.w);
  }
  count = __reduce_add_sync(0xffffffffu, count);
  if (threadIdx.x % 32 == 0) counts[tile] = count;
}

// A block processes one tile at a time: it lists the tile's rows in shared memory and writes them
// contiguously, while the next tile's bits are loaded.
__global__ void __launch_bounds__(kTileThreads)
    ListTileRows(const uint32_t* bitmap, uint32_t tiles, const uint64_t* offsets, RowId* rows,
                 uint64_t capacity) {
  __shared__ uint16_t listed[kTileRows];
  __shared__ uint32_t warp_rows[kTileThreads / 32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint64_t next_from = 0, next_to = 0;
  uint32_t next_word = 0;
  const auto load = [&](uint64_t tile) {
    if (tile >= tiles) return;
    next_from = offsets[tile];
    next_to = offsets[tile + 1];
    next_word = bitmap[tile * kTileWords + threadIdx.x];
  };
  load(blockIdx.x);
  for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const uint64_t from = next_from, to = min(next_to, capacity);
    uint32_t word = next_word;
    load(tile + gridDim.x);
    if (from >= to) continue;
    uint32_t at = __popc(word);
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(0xffffffffu, at, step);
      if (lane >= step) at += other;
    }
    if (lane == 31) warp_rows[warp] = at;
    __syncthreads();
    at -= __popc(word);
    for (uint32_t i = 0; i < warp; ++i) at += warp_rows[i];
    for (; word != 0; word &= word - 1) {
      listed[at++] = static_cast<uint16_t>(threadIdx.x * 32 + __ffs(static_cast<int>(word)) - 1);
    }
    __syncthreads();
    const RowId first = static_cast<RowId>(tile * kTileRows);
    for (uint32_t i = threadIdx.x; i < to - from; i += kTileThreads) {
      __stcs(rows + from + i, first + listed[i]);
    }
    __syncthreads();
  }
}

ResidentBlocks list_blocks;

}  // namespace

absl::Status CountTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* counts,
                        cudaStream_t stream) {
  constexpr uint64_t kTilesAtOnce = kTileThreads / 32;
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "CountTileBits",
      {static_cast<unsigned>((tiles + kTilesAtOnce - 1) / kTilesAtOnce), kTileThreads}, stream,
      CountTileBits, reinterpret_cast<const uint4*>(bitmap), tiles, counts);
  return absl::OkStatus();
}

absl::Status ListTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* offsets, RowId* rows,
                       uint64_t capacity, uint64_t* total, cudaStream_t stream) {
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(offsets, 0, sizeof(uint64_t), stream));
  RETURN_IF_ERROR(
      InclusiveScan(offsets + 1, offsets + 1, tiles, ::cuda::std::plus<uint64_t>(), stream));
  if (total != nullptr) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(total, offsets + tiles, sizeof(uint64_t),
                                               cudaMemcpyDeviceToDevice, stream));
  }
  if (capacity == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const unsigned blocks,
                   list_blocks.Count(reinterpret_cast<const void*>(ListTileRows), kTileThreads, 0));
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "ListTileRows", {static_cast<unsigned>(std::min<uint64_t>(blocks, tiles)), kTileThreads},
      stream, ListTileRows, bitmap, static_cast<uint32_t>(tiles), offsets, rows, capacity);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
