#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/run/range_items.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

namespace cairn::gpu {

// Copies the rows of ranges, for any source of the row id at a position. Rows is a plain struct
// with
//
//   __device__ RowId operator()(Position) const;
//   // The row ids in run order if they are contiguous, otherwise null; they are read as vectors.
//   __device__ const RowId* column() const;
namespace range_rows {

// A tile is a number of consecutive items (range_items.cuh) that one block processes. A unit is the
// number of rows that one warp copies at a time: kGroups groups of four rows per lane, so that
// reads and writes have 16 bytes and several are in flight.
inline constexpr int kThreads = 256;
inline constexpr int kBlocksAtOnce = 8;     // per multiprocessor
inline constexpr int kRangesAtOnce = 1024;  // of a tile, with bounds in shared memory
inline constexpr int kGroups = 2;
inline constexpr int kGroupRows = 4;
inline constexpr int kUnitRows = 32 * kGroups * kGroupRows;
inline constexpr uint64_t kMaxTileItems = 8192;
inline constexpr uint64_t kMinTileItems = 2048;
inline constexpr uint64_t kTilesWanted = 1024;  // enough to fill a large device
inline constexpr unsigned kWholeWarp = 0xffffffff;

template <typename Rows>
struct RowBatch {
  Rows rows;
  const Position* begin;
  const uint64_t* offsets;
  size_t queries;
  uint64_t max_items;
  uint64_t tile_items;
  RowId* out;
};

// The rows of a tile, counted from its first row, and the ranges they belong to, or a batch of up
// to kRangesAtOnce of these.
struct TileRanges {
  int end[kRangesAtOnce];  // end of range i
  // Row x of range i has position source[i] + x (ascending) or source[i] - x.
  uint32_t source[kRangesAtOnce];
};

// The first range from `low` on that ends after row x; there must be one before `count`.
__device__ inline int RangeOfRow(const TileRanges& ranges, int low, int count, int x) {
  int size = count - low;
  while (size > 1) {
    const int half = size / 2;
    if (ranges.end[low + half - 1] <= x) low += half;
    size -= half;
  }
  return low;
}

template <Order kOrder>
__device__ Position PositionOfRow(const TileRanges& ranges, int range, int x) {
  const uint32_t row = static_cast<uint32_t>(x);
  return kOrder == Order::kAscending ? ranges.source[range] + row : ranges.source[range] - row;
}

// Words `shift` to `shift` + 3 of two consecutive vectors.
__device__ inline uint4 Shifted(uint4 low, uint4 high, uint32_t shift) {
  if (shift & 1) low = {low.y, low.z, low.w, high.x}, high = {high.y, high.z, high.w, high.w};
  if (shift & 2) low = {low.z, low.w, high.x, high.y};
  return low;
}

__device__ inline uint4 Reversed(uint4 v) {
  return {v.w, v.z, v.y, v.x};
}

// Copies a unit within one range that has three more rows on both sides, so that whole vectors
// around its rows can be read. Each lane reads vectors, and gets the words of the next vector that
// belong to its rows from the lane that read it. `out` must be aligned to 16 bytes.
template <Order kOrder>
__device__ void CopyWideUnit(const RowId* source, RowId* out, int lane) {
  constexpr int kStep = kOrder == Order::kAscending ? 1 : -1;
  // The position of the first row in its vector, in the direction of reading.
  const uint32_t word = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(source) / 4) & 3;
  const uint32_t shift = kStep > 0 ? word : 3 - word;
  const uint4* const vectors = reinterpret_cast<const uint4*>(source - word);
  uint4 read[kGroups + 1];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) read[g] = vectors[(g * 32 + lane) * kStep];
  read[kGroups] = uint4{};
  if (shift != 0 && lane == 0) read[kGroups] = vectors[kGroups * 32 * kStep];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    // Each lane passes a vector to the previous lane. Lane 0 passes its next vector to the last
    // lane.
    const uint4 given = lane != 0 ? read[g] : read[g + 1];
    const uint4 ahead = kStep > 0 ? given : Reversed(given);
    uint4 high{};
    high.x = __shfl_sync(kWholeWarp, ahead.x, lane + 1);
    high.y = __shfl_sync(kWholeWarp, ahead.y, lane + 1);
    high.z = __shfl_sync(kWholeWarp, ahead.z, lane + 1);
    const uint4 low = kStep > 0 ? read[g] : Reversed(read[g]);
    __stcs(reinterpret_cast<uint4*>(out) + g * 32 + lane, Shifted(low, high, shift));
  }
}

// Copies the rows of a unit that are in [first, last), from any number of ranges: those in
// `ranges`, starting with `range`.
template <Order kOrder, typename Rows>
__device__ void CopyAnyUnit(const Rows& source, const TileRanges& ranges, int range, int count,
                            int unit, int first, int last, RowId* out, int lane) {
  RowId rows[kGroups][kGroupRows];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int group = unit + (g * 32 + lane) * kGroupRows;
    if (group + kGroupRows <= first || group >= last) continue;
    int r = RangeOfRow(ranges, range, count, max(group, first));
#pragma unroll
    for (int w = 0; w < kGroupRows; ++w) {
      const int x = group + w;
      if (x < first || x >= last) continue;
      if (ranges.end[r] <= x && ranges.end[++r] <= x) r = RangeOfRow(ranges, r, count, x);
      rows[g][w] = source(PositionOfRow<kOrder>(ranges, r, x));
    }
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int group = unit + (g * 32 + lane) * kGroupRows;
    RowId* const to = out + group;
    if (group >= first && group + kGroupRows <= last) {
      __stcs(reinterpret_cast<uint4*>(to), uint4{rows[g][0], rows[g][1], rows[g][2], rows[g][3]});
      continue;
    }
#pragma unroll
    for (int w = 0; w < kGroupRows; ++w) {
      if (group + w >= first && group + w < last) to[w] = rows[g][w];
    }
  }
}

// Loads the bounds of `count` ranges from `range` on, for a tile with rows [first, last).
template <Order kOrder, typename Rows>
__device__ void LoadRanges(const RowBatch<Rows>& batch, size_t range, int count, uint64_t first,
                           uint64_t last, TileRanges* ranges) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const uint64_t end = batch.offsets[range + i + 1];
    ranges->end[i] = static_cast<int>(min(end, last) - first);
    const uint64_t zero =
        kOrder == Order::kAscending ? first - batch.offsets[range + i] : end - 1 - first;
    ranges->source[i] = batch.begin[range + i] + static_cast<uint32_t>(zero);
  }
}

// The first row at or after an item, given the range of the item.
template <typename Rows>
__device__ uint64_t RowOfItem(const RowBatch<Rows>& batch, uint64_t item, size_t range) {
  const uint64_t heading = batch.offsets[range] + range;
  return item - range - (item > heading ? 1 : 0);
}

template <Order kOrder, typename Rows>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce) CopyTiles(RowBatch<Rows> batch) {
  __shared__ TileRanges ranges;
  __shared__ size_t ends[2];  // first and last range of the tile
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const uint64_t item = blockIdx.x * batch.tile_items;
  const uint64_t items = batch.queries + batch.offsets[batch.queries];
  if (item >= items) return;
  const uint64_t end_item = min(item + batch.tile_items, items);
  if (warp < 2)
    ends[warp] = RangeOfItem(batch.offsets, batch.queries, warp == 0 ? item : end_item, lane);
  __syncthreads();
  const size_t last_range = ends[1];
  const uint64_t first_row = RowOfItem(batch, item, ends[0]);
  const uint64_t last_row = RowOfItem(batch, end_item, last_range);
  RowId* const out = batch.out + first_row;
  // Units are aligned to vectors of the output, so the first may begin up to three rows before the
  // tile.
  const int lead = static_cast<int>(reinterpret_cast<uintptr_t>(out) / sizeof(RowId) % kGroupRows);
  int done = 0;
  for (size_t range = ends[0]; range <= last_range; range += kRangesAtOnce) {
    const int count = static_cast<int>(min(size_t{kRangesAtOnce}, last_range - range + 1));
    LoadRanges<kOrder>(batch, range, count, first_row, last_row, &ranges);
    __syncthreads();
    const int end = ranges.end[count - 1];
    int unit = (done + lead) / kUnitRows * kUnitRows - lead + warp * kUnitRows;
    for (; unit < end; unit += kThreads / 32 * kUnitRows) {
      const int first = max(unit, done), last = min(unit + kUnitRows, end);
      if (first >= last) continue;
      const int r = RangeOfRow(ranges, 0, count, first);
      const int start = r == 0 ? done : ranges.end[r - 1];
      if (batch.rows.column() != nullptr && unit >= start + 3 &&
          unit + kUnitRows + 3 <= ranges.end[r]) {
        CopyWideUnit<kOrder>(batch.rows.column() + PositionOfRow<kOrder>(ranges, r, first),
                             out + unit, lane);
      } else {
        CopyAnyUnit<kOrder>(batch.rows, ranges, r, count, unit, first, last, out, lane);
      }
    }
    done = end;
    __syncthreads();
  }
}

}  // namespace range_rows

// Copies the rows of ranges like CopyRowsFromColumn, from any Rows.
template <typename Rows>
absl::Status CopyRowsOfRanges(const Rows& source, const Position* begin, const uint64_t* offsets,
                              size_t queries, uint64_t rows, Order order, RowId* out,
                              cudaStream_t stream) {
  using namespace range_rows;
  RowBatch<Rows> batch{source, begin, offsets, queries, queries + rows, 0, out};
  batch.tile_items =
      std::clamp((batch.max_items / kTilesWanted + kUnitRows) / kUnitRows * kUnitRows,
                 kMinTileItems, kMaxTileItems);
  const size_t tiles = (batch.max_items + batch.tile_items - 1) / batch.tile_items;
  const auto kernel = order == Order::kAscending ? CopyTiles<Order::kAscending, Rows>
                                                 : CopyTiles<Order::kDescending, Rows>;
  CAIRN_RETURN_IF_LAUNCH_FAILS("CopyTiles", LaunchShape{static_cast<unsigned>(tiles), kThreads},
                               stream, kernel, batch);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
