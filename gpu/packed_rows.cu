#include "gpu/packed_rows.h"

#include <algorithm>

#include "gpu/cuda_status.h"
#include "gpu/launch.h"
#include "gpu/packed_leaf.cuh"

namespace cairn::gpu {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void WriteSamples(const Position* first, size_t primary, uint32_t* samples,
                             size_t count) {
  ForEachIndex(primary, [=](size_t leaf) {
    // The samples in [first[leaf], first[leaf + 1]).
    const size_t end = (first[leaf + 1] + kLeafSample - 1) / kLeafSample;
    for (size_t i = (first[leaf] + kLeafSample - 1) / kLeafSample; i < end; ++i) {
      samples[i] = static_cast<uint32_t>(leaf);
    }
    if (leaf + 1 == primary) samples[count - 1] = static_cast<uint32_t>(leaf);
  });
}

// Where queries have fewer rows than this on average, four lanes copy those of each; else a warp
// copies so many rows, of one query or of several.
constexpr uint64_t kShortRows = 32;
constexpr uint64_t kWarpRows = 1024;
constexpr int kCopyThreads = 128;

struct RowCopy {
  const Leaf* leaves;
  const uint32_t* samples;
  const Position* begin;
  const uint64_t* offsets;
  size_t queries;
  uint64_t rows;
  bool descending;
  RowId* row_ids;

  // The last query whose rows begin at or before row `row`.
  __device__ size_t QueryOf(uint64_t row) const {
    size_t least = 0, most = queries;
    while (most - least > 1) {
      const size_t middle = (least + most) / 2;
      if (offsets[middle] <= row) {
        least = middle;
      } else {
        most = middle;
      }
    }
    return least;
  }
};

template <int kBits>
__device__ inline Position PositionOfLeaf(const Leaf* leaf) {
  return reinterpret_cast<const Position*>(leaf)[LeafQuad<kBits>::kPositionWord];
}

// The primary leaf that `position` is in; by a warp.
template <int kBits>
__device__ inline uint32_t LeafOf(const RowCopy& copy, Position position, int lane) {
  uint32_t leaf = copy.samples[position / kLeafSample];
  const uint32_t last = copy.samples[position / kLeafSample + 1];
  // Leaf `leaf` begins at or before the position; find the last one that does.
  while (true) {
    const uint32_t mine = leaf + 1 + static_cast<uint32_t>(lane);
    const bool before = mine <= last && PositionOfLeaf<kBits>(copy.leaves + mine) <= position;
    const uint32_t count = __popc(__ballot_sync(kAllLanes, before));
    leaf += count;
    if (count < 32) return leaf;
  }
}

// Copies the rows of positions [first, end), which go to out[position - first], or from the end on
// backwards; by a warp, eight leaves at a time.
template <int kBits>
__device__ void CopySegment(const RowCopy& copy, Position first, Position end, RowId* out,
                            int lane) {
  using Quad = LeafQuad<kBits>;
  const int part = lane % 4, quad = lane / 4;
  const auto put = [&](const Quad& leaf, Position begin, bool linked) {
    leaf.ForEachRow(part, linked, [&](int slot, RowId row_id) {
      const Position position = begin + static_cast<Position>(slot);
      if (position < first || position >= end) return;
      out[copy.descending ? end - 1 - position : position - first] = row_id;
    });
  };
  const uint32_t last = copy.samples[(end - 1) / kLeafSample + 1];
  for (uint32_t leaf = LeafOf<kBits>(copy, first, lane) + quad;; leaf += 8) {
    Quad words;
    words.Load(copy.leaves + min(leaf, last), part);
    bool linked = words.HasLink(part);
    Position begin = words.PositionInAll();
    const bool there = leaf <= last && begin < end;
    if (there) put(words, begin, linked);
    bool follow = there && linked;
    while (__any_sync(kAllLanes, follow)) {
      const uint32_t next = words.Link();
      if (follow) words.Load(copy.leaves + next, part);
      linked = words.HasLink(part);
      begin = words.PositionInAll();
      if (follow) put(words, begin, linked);
      follow = follow && linked;
    }
    if (!__all_sync(kAllLanes, there)) return;
  }
}

template <int kBits>
__global__ void __launch_bounds__(kCopyThreads) CopyRowsKernel(RowCopy copy) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint64_t warp = (uint64_t{blockIdx.x} * kCopyThreads + threadIdx.x) / 32;
  uint64_t row = warp * kWarpRows;
  const uint64_t stop = min(row + kWarpRows, copy.rows);
  if (row >= stop) return;
  for (size_t query = copy.QueryOf(row); row < stop; ++query) {
    const uint64_t from = copy.offsets[query], to = copy.offsets[query + 1];
    const uint64_t upto = min(to, stop);
    if (upto <= row) continue;
    // Rows [row, upto) of the output, which are [row - from, upto - from) of the query.
    const Position begin = copy.begin[query];
    const Position first =
        static_cast<Position>(copy.descending ? begin + (to - upto) : begin + (row - from));
    CopySegment<kBits>(copy, first, static_cast<Position>(first + (upto - row)), copy.row_ids + row,
                       lane);
    row = upto;
  }
}

// The primary leaf that `position` is in; by four lanes, a query for each four of a warp. Those
// that are not `active` get any leaf.
template <int kBits>
__device__ inline uint32_t LeafOfQuad(const RowCopy& copy, Position position, bool active,
                                      int lane) {
  uint32_t leaf = active ? copy.samples[position / kLeafSample] : 0;
  const uint32_t last = active ? copy.samples[position / kLeafSample + 1] : 0;
  while (true) {
    const uint32_t mine = leaf + 1 + static_cast<uint32_t>(lane % 4);
    const bool before =
        active && mine <= last && PositionOfLeaf<kBits>(copy.leaves + mine) <= position;
    const uint32_t quad = __ballot_sync(kAllLanes, before) >> (lane & ~3) & 15;
    leaf += __popc(quad);
    active = active && quad == 15;
    if (!__any_sync(kAllLanes, active)) return leaf;
  }
}

template <int kBits>
__global__ void __launch_bounds__(kCopyThreads) CopyShortRowsKernel(RowCopy copy) {
  using Quad = LeafQuad<kBits>;
  const int lane = static_cast<int>(threadIdx.x % 32), part = lane % 4;
  const size_t stride = size_t{gridDim.x} * kCopyThreads / 4;
  const size_t end = (copy.queries + 7) / 8 * 8;  // whole warps
  for (size_t query = (size_t{blockIdx.x} * kCopyThreads + threadIdx.x) / 4; query < end;
       query += stride) {
    const uint64_t from = query < copy.queries ? copy.offsets[query] : 0;
    const uint64_t rows = query < copy.queries ? copy.offsets[query + 1] - from : 0;
    const Position first = rows == 0 ? 0 : copy.begin[query];
    uint32_t leaf = LeafOfQuad<kBits>(copy, first, rows != 0, lane);
    // The rows are copied leaf after leaf, and those of a leaf along its chain.
    uint64_t copied = 0;
    uint32_t next = leaf;
    while (__any_sync(kAllLanes, copied < rows)) {
      Quad words;
      words.Load(copy.leaves + next, part);
      const bool linked = words.HasLink(part);
      const uint32_t link = words.Link();
      const Position begin = words.PositionInAll();
      uint32_t entries = 0;
      words.ForEachRow(part, linked, [&](int slot, RowId row_id) {
        ++entries;
        const Position position = begin + static_cast<Position>(slot);
        if (position < first || position - first >= rows) return;
        const uint64_t i = position - first;
        copy.row_ids[from + (copy.descending ? rows - 1 - i : i)] = row_id;
      });
      entries += __shfl_xor_sync(kAllLanes, entries, 1);
      entries += __shfl_xor_sync(kAllLanes, entries, 2);
      if (copied < rows) {
        copied = begin + entries > first ? begin + entries - first : 0;
        if (!linked) ++leaf;
        next = linked ? link : leaf;
        if (copied >= rows) next = leaf = 0;  // any leaf there is
      }
    }
  }
}

template <int kBits>
void LaunchCopyRows(const RowCopy& copy, cudaStream_t stream) {
  if (copy.rows < kShortRows * copy.queries) {
    constexpr size_t kPerBlock = kCopyThreads / 4, kMostBlocks = size_t{1} << 20;
    const size_t blocks = (copy.queries + kPerBlock - 1) / kPerBlock;
    CopyShortRowsKernel<kBits>
        <<<static_cast<unsigned>(std::min(blocks, kMostBlocks)), kCopyThreads, 0, stream>>>(copy);
    return;
  }
  const uint64_t warps = (copy.rows + kWarpRows - 1) / kWarpRows;
  const auto blocks = static_cast<unsigned>((warps * 32 + kCopyThreads - 1) / kCopyThreads);
  CopyRowsKernel<kBits><<<blocks, kCopyThreads, 0, stream>>>(copy);
}

}  // namespace

absl::StatusOr<DeviceBuffer<uint32_t>> SampleLeaves(const LeafCut& cut, size_t size,
                                                    cudaStream_t stream) {
  DeviceBuffer<uint32_t> samples;
  const size_t count = (size + kLeafSample - 1) / kLeafSample + 1;
  if (absl::Status s = Resize(&samples, count, stream); !s.ok()) return s;
  WriteSamples<<<SimpleBlocks(cut.primary), kSimpleThreads, 0, stream>>>(
      cut.first.data(), cut.primary, samples.data(), count);
  CAIRN_RETURN_IF_LAUNCH_FAILED("WriteSamples");
  return samples;
}

absl::Status CopyRowsFromLeaves(const PackedView& view, const uint32_t* samples,
                                const Position* begin, const uint64_t* offsets, size_t queries,
                                uint64_t rows, Order order, RowId* row_ids, cudaStream_t stream) {
  const RowCopy copy = {
      view.leaves, samples, begin, offsets, queries, rows, order == Order::kDescending, row_ids};
  switch (view.bits) {
    case 16:
      LaunchCopyRows<16>(copy, stream);
      break;
    case 32:
      LaunchCopyRows<32>(copy, stream);
      break;
    case 48:
      LaunchCopyRows<48>(copy, stream);
      break;
    default:
      LaunchCopyRows<64>(copy, stream);
  }
  CAIRN_RETURN_IF_LAUNCH_FAILED("CopyRowsKernel");
  return absl::OkStatus();
}

}  // namespace cairn::gpu
