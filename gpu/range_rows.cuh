#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/cuda_status.h"
#include "gpu/device_memory.h"
#include "gpu/launch.h"

namespace cairn::gpu {

// How the rows of ranges are copied, whatever gives the row of a position: Rows is a plain struct
// with
//
//   __device__ RowId operator()(Position) const;
//   // Where row ids in run order stand next to each other, or null: they are read as vectors.
//   __device__ const RowId* column() const;
namespace range_rows {

// Ranges and rows form one sequence of items: range i's heading, at offsets[i] + i, then its rows.
// A tile is a number of consecutive items, which one block works off; a unit is what one warp
// copies at a time: kGroups groups of four rows for each lane, so that reads and writes are of 16
// bytes and several are in flight.
inline constexpr int kThreads = 256;
inline constexpr int kRangesAtOnce = 1024;  // of a tile, whose bounds are in shared memory
inline constexpr int kGroups = 4;
inline constexpr int kGroupRows = 4;
inline constexpr uint32_t kUnitRows = 32 * kGroups * kGroupRows;
inline constexpr uint64_t kMostTileItems = 16384;
inline constexpr uint64_t kLeastTileItems = 1024;
inline constexpr uint64_t kTilesWanted = 8192;  // enough to balance a large device

template <typename Rows>
struct RowBatch {
  Rows rows;
  const Position* begin;
  const uint64_t* offsets;
  size_t queries;
  uint64_t items;
  uint64_t tile_items;
  RowId* out;
};

// first[t] = the last range whose heading is at or before the first item of tile t.
template <typename Rows>
__global__ void FindTiles(RowBatch<Rows> batch, size_t tiles, size_t* first) {
  ForEachIndex(tiles + 1, [=](size_t tile) {
    const uint64_t item = tile * batch.tile_items;
    size_t low = 0, size = batch.queries;
    while (size > 1) {
      const size_t half = size / 2;
      const size_t middle = low + half;
      if (batch.offsets[middle] + middle <= item) low = middle;
      size -= half;
    }
    first[tile] = low;
  });
}

// The rows of a tile, counted from 0 at its first one, and the ranges they belong to, or as many of
// these as are looked at together.
struct TileRanges {
  uint32_t end[kRangesAtOnce];     // where range i ends
  uint32_t source[kRangesAtOnce];  // row x of range i has position source[i] + x, or - x
};

// The first range from `low` on that ends behind row x; requires one before `count`.
__device__ inline uint32_t RangeOfRow(const TileRanges& ranges, uint32_t low, uint32_t count,
                                      uint32_t x) {
  uint32_t size = count - low;
  while (size > 1) {
    const uint32_t half = size / 2;
    if (ranges.end[low + half - 1] <= x) low += half;
    size -= half;
  }
  return low;
}

template <Order kOrder>
__device__ Position PositionOfRow(const TileRanges& ranges, uint32_t range, uint32_t x) {
  return kOrder == Order::kAscending ? ranges.source[range] + x : ranges.source[range] - x;
}

// Words `shift` to `shift` + 3 of two vectors that follow each other.
__device__ inline uint4 Shifted(uint4 low, uint4 high, uint32_t shift) {
  if (shift & 1) low = {low.y, low.z, low.w, high.x}, high = {high.y, high.z, high.w, high.w};
  if (shift & 2) low = {low.z, low.w, high.x, high.y};
  return low;
}

__device__ inline uint4 Reversed(uint4 v) {
  return {v.w, v.z, v.y, v.x};
}

// Copies a unit, from row x on, that lies in one range with three rows to spare on both sides, so
// that whole vectors around its rows may be read. `out` is aligned to 16 bytes.
template <Order kOrder>
__device__ void CopyWideUnit(const RowId* source, RowId* out, uint32_t lane) {
  constexpr bool kUp = kOrder == Order::kAscending;
  // The first row's place in its vector, in the direction of reading.
  const uint32_t word = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(source) / 4) & 3;
  const uint32_t shift = kUp ? word : 3 - word;
  const uint4* const vectors = reinterpret_cast<const uint4*>(source - word);
  const int next = shift == 0 ? 0 : kUp ? 1 : -1;
  uint4 low[kGroups], high[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int i = (g * 32 + static_cast<int>(lane)) * (kUp ? 1 : -1);
    low[g] = vectors[i];
    high[g] = vectors[i + next];
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (!kUp) low[g] = Reversed(low[g]), high[g] = Reversed(high[g]);
    __stcs(reinterpret_cast<uint4*>(out) + g * 32 + lane, Shifted(low[g], high[g], shift));
  }
}

// Copies the rows of a unit that are in [first, last), whatever ranges they belong to: those in
// `ranges` from `range` on.
template <Order kOrder, typename Rows>
__device__ void CopyAnyUnit(const RowBatch<Rows>& batch, const TileRanges& ranges, uint32_t range,
                            uint32_t count, int64_t unit, uint32_t first, uint32_t last, RowId* out,
                            uint32_t lane) {
  RowId rows[kGroups][kGroupRows];
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int64_t group = unit + (g * 32 + lane) * kGroupRows;
    if (group + kGroupRows <= first || group >= last) continue;
    uint32_t r =
        RangeOfRow(ranges, range, count, static_cast<uint32_t>(max(group, int64_t{first})));
#pragma unroll
    for (int w = 0; w < kGroupRows; ++w) {
      if (group + w < first || group + w >= last) continue;
      const uint32_t x = static_cast<uint32_t>(group + w);
      if (ranges.end[r] <= x && ranges.end[++r] <= x) r = RangeOfRow(ranges, r, count, x);
      rows[g][w] = batch.rows(PositionOfRow<kOrder>(ranges, r, x));
    }
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int64_t group = unit + (g * 32 + lane) * kGroupRows;
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

// Reads the bounds of `count` ranges from `range` on, of a tile with rows [first, last).
template <Order kOrder, typename Rows>
__device__ void LoadRanges(const RowBatch<Rows>& batch, size_t range, uint32_t count,
                           uint64_t first, uint64_t last, TileRanges* ranges) {
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const uint64_t end = batch.offsets[range + i + 1];
    ranges->end[i] = static_cast<uint32_t>(min(end, last) - first);
    const uint64_t zero =
        kOrder == Order::kAscending ? first - batch.offsets[range + i] : end - 1 - first;
    ranges->source[i] = batch.begin[range + i] + static_cast<uint32_t>(zero);
  }
}

// The first row at or behind an item, given the range that it belongs to.
template <typename Rows>
__device__ uint64_t RowOfItem(const RowBatch<Rows>& batch, uint64_t item, size_t range) {
  const uint64_t heading = batch.offsets[range] + range;
  return item - range - (item > heading ? 1 : 0);
}

template <Order kOrder, typename Rows>
__global__ void __launch_bounds__(kThreads)
    CopyTiles(RowBatch<Rows> batch, const size_t* tile_ranges) {
  __shared__ TileRanges ranges;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t first_range = tile_ranges[blockIdx.x], last_range = tile_ranges[blockIdx.x + 1];
  const uint64_t item = blockIdx.x * batch.tile_items;
  const uint64_t first_row = RowOfItem(batch, item, first_range);
  const uint64_t last_row = RowOfItem(batch, min(item + batch.tile_items, batch.items), last_range);
  RowId* const out = batch.out + first_row;
  // Units start at vectors of the output, so the first one begins up to three rows before the tile.
  const int64_t lead = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) / 4 % kGroupRows);
  uint32_t done = 0;
  for (size_t range = first_range; range <= last_range; range += kRangesAtOnce) {
    const uint32_t count =
        static_cast<uint32_t>(min(size_t{kRangesAtOnce}, last_range - range + 1));
    LoadRanges<kOrder>(batch, range, count, first_row, last_row, &ranges);
    __syncthreads();
    const uint32_t end = ranges.end[count - 1];
    int64_t unit = (done + lead) / kUnitRows * kUnitRows - lead + int64_t{warp} * kUnitRows;
    for (; unit < end; unit += kThreads / 32 * kUnitRows) {
      const uint32_t first = static_cast<uint32_t>(max(unit, int64_t{done}));
      const uint32_t last = static_cast<uint32_t>(min(unit + kUnitRows, int64_t{end}));
      if (first >= last) continue;
      const uint32_t r = RangeOfRow(ranges, 0, count, first);
      const uint32_t start = r == 0 ? done : ranges.end[r - 1];
      if (batch.rows.column() != nullptr && unit >= int64_t{start} + 3 &&
          unit + kUnitRows + 3 <= int64_t{ranges.end[r]}) {
        CopyWideUnit<kOrder>(batch.rows.column() + PositionOfRow<kOrder>(ranges, r, first),
                             out + unit, lane);
      } else {
        CopyAnyUnit<kOrder>(batch, ranges, r, count, unit, first, last, out, lane);
      }
    }
    done = end;
    __syncthreads();
  }
}

}  // namespace range_rows

// Copies the rows of ranges: as CopyRowsFromColumn, from any Rows.
template <typename Rows>
absl::Status CopyRowsOfRanges(const Rows& source, const Position* begin, const uint64_t* offsets,
                              size_t queries, uint64_t rows, Order order, RowId* out,
                              cudaStream_t stream) {
  using namespace range_rows;
  RowBatch<Rows> batch{source, begin, offsets, queries, queries + rows, 0, out};
  batch.tile_items = std::clamp((batch.items / kTilesWanted + kUnitRows) / kUnitRows * kUnitRows,
                                kLeastTileItems, kMostTileItems);
  const size_t tiles = (batch.items + batch.tile_items - 1) / batch.tile_items;
  absl::StatusOr<DeviceBuffer<size_t>> tile_ranges =
      DeviceBuffer<size_t>::Allocate(tiles + 1, stream);
  if (!tile_ranges.ok()) return tile_ranges.status();
  FindTiles<<<SimpleBlocks(tiles + 1), kSimpleThreads, 0, stream>>>(batch, tiles,
                                                                    tile_ranges->data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("FindTiles");
  const auto kernel = order == Order::kAscending ? CopyTiles<Order::kAscending, Rows>
                                                 : CopyTiles<Order::kDescending, Rows>;
  kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(batch, tile_ranges->data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CopyTiles");
  return absl::OkStatus();
}

}  // namespace cairn::gpu
