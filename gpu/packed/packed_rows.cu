#include "gpu/packed/packed_rows.h"

#include <algorithm>

#include "gpu/packed/packed_leaf.cuh"
#include "gpu/run/range_items.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

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

// Items per warp (range_items.cuh). With more items, a warp searches less often for its first
// range; with fewer, a small batch uses more warps.
constexpr uint64_t kMaxWarpItems = 1024, kMinWarpItems = 64;
constexpr uint64_t kWarpsWanted = 32768;
// Ranges of up to this many rows are copied by four lanes, eight ranges at a time; longer ones by
// the warp.
constexpr uint32_t kShortRows = 32;
constexpr int kCopyThreads = 128;

struct RowCopy {
  const Leaf* leaves;
  const uint32_t* samples;
  const Position* begin;
  const uint64_t* offsets;
  size_t ranges;
  uint64_t max_items, warp_items;
  bool descending;
  RowId* row_ids;
};

// Rows of one range that a warp has to copy: those of positions [first, first + count) are written
// to `out` and after, or backward to before its end.
struct RowPiece {
  Position first = 0;
  uint32_t count = 0;
  uint64_t out = 0;

  __device__ RowPiece FromLane(int lane) const {
    return {__shfl_sync(kAllLanes, first, lane), __shfl_sync(kAllLanes, count, lane),
            __shfl_sync(kAllLanes, out, lane)};
  }
};

// The part of range `range`'s rows that is in items [item, end). The range's heading is before the
// end.
__device__ inline RowPiece PieceOf(const RowCopy& copy, size_t range, uint64_t item, uint64_t end) {
  const uint64_t from = copy.offsets[range], rows = copy.offsets[range + 1] - from;
  const uint64_t heading = from + range;
  const uint64_t before = item > heading ? item - heading - 1 : 0;
  const uint64_t upto = min(rows, end - heading - 1);
  if (before >= upto) return {};
  const Position begin = copy.begin[range];
  return {static_cast<Position>(begin + (copy.descending ? rows - upto : before)),
          static_cast<uint32_t>(upto - before), from + before};
}

template <int kBits>
__device__ inline Position PositionOfLeaf(const Leaf* leaf) {
  return reinterpret_cast<const Position*>(leaf)[LeafQuad<kBits>::kPositionWord];
}

// The primary leaf that contains `position`; called by a warp.
template <int kBits>
__device__ inline uint32_t LeafOf(const RowCopy& copy, Position position, int lane) {
  uint32_t leaf = copy.samples[position / kLeafSample];
  const uint32_t last = copy.samples[position / kLeafSample + 1];
  // Leaf `leaf` begins at or before the position; finds the last leaf that does.
  while (true) {
    const uint32_t mine = leaf + 1 + static_cast<uint32_t>(lane);
    const bool before = mine <= last && PositionOfLeaf<kBits>(copy.leaves + mine) <= position;
    const uint32_t count = __popc(__ballot_sync(kAllLanes, before));
    leaf += count;
    if (count < 32) return leaf;
  }
}

// Copies a piece, eight leaves at a time; called by a warp.
template <int kBits>
__device__ void CopyByWarp(const RowCopy& copy, const RowPiece& piece, int lane) {
  using Quad = LeafQuad<kBits>;
  const int part = lane % 4, quad = lane / 4;
  const Position first = piece.first, end = piece.first + piece.count;
  RowId* const out = copy.row_ids + piece.out;
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
    words.Load(copy.leaves, min(leaf, last), part);
    bool linked = words.HasLink(part);
    Position begin = words.PositionInAll();
    const bool there = leaf <= last && begin < end;
    if (there) put(words, begin, linked);
    bool follow = there && linked;
    while (__any_sync(kAllLanes, follow)) {
      const uint32_t next = words.Link();
      if (follow) words.Load(copy.leaves, next, part);
      linked = words.HasLink(part);
      begin = words.PositionInAll();
      if (follow) put(words, begin, linked);
      follow = follow && linked;
    }
    if (!__all_sync(kAllLanes, there)) return;
  }
}

// The primary leaf that contains `position`; called by four lanes, one query per quad of a warp.
// Quads that are not `active` get any leaf.
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

// Copies a piece of few rows or none; called by four lanes, one piece per quad of a warp.
template <int kBits>
__device__ void CopyByQuad(const RowCopy& copy, const RowPiece& piece, int lane) {
  using Quad = LeafQuad<kBits>;
  const int part = lane % 4;
  const Position first = piece.first;
  const uint32_t rows = piece.count;
  uint32_t leaf = LeafOfQuad<kBits>(copy, first, rows != 0, lane);
  // Copies the rows leaf by leaf, and within a leaf along its chain.
  uint32_t copied = 0;
  uint32_t next = leaf;
  while (__any_sync(kAllLanes, copied < rows)) {
    Quad words;
    words.Load(copy.leaves, next, part);
    const bool linked = words.HasLink(part);
    const uint32_t link = words.Link();
    const Position begin = words.PositionInAll();
    uint32_t entries = 0;
    words.ForEachRow(part, linked, [&](int slot, RowId row_id) {
      ++entries;
      const Position position = begin + static_cast<Position>(slot);
      if (position < first || position - first >= rows) return;
      const uint32_t i = position - first;
      copy.row_ids[piece.out + (copy.descending ? rows - 1 - i : i)] = row_id;
    });
    entries += __shfl_xor_sync(kAllLanes, entries, 1);
    entries += __shfl_xor_sync(kAllLanes, entries, 2);
    if (copied < rows) {
      copied = begin + entries > first ? begin + entries - first : 0;
      if (!linked) ++leaf;
      next = linked ? link : leaf;
      if (copied >= rows) next = leaf = 0;  // any existing leaf
    }
  }
}

template <int kBits>
__global__ void __launch_bounds__(kCopyThreads)
    CopyRowsKernel(const __grid_constant__ RowCopy copy) {
  __shared__ uint8_t lanes_of_short[kCopyThreads];
  const int lane = static_cast<int>(threadIdx.x % 32), quad = lane / 4;
  uint8_t* const short_lanes = lanes_of_short + threadIdx.x / 32 * 32;
  const uint64_t warp = (uint64_t{blockIdx.x} * kCopyThreads + threadIdx.x) / 32;
  const uint64_t item = warp * copy.warp_items;
  const uint64_t items = copy.ranges + copy.offsets[copy.ranges];
  if (item >= items) return;
  const uint64_t end = min(item + copy.warp_items, items);
  for (size_t first = RangeOfItem(copy.offsets, copy.ranges, item, lane);; first += 32) {
    // One range per lane.
    const size_t range = first + static_cast<size_t>(lane);
    const bool here = range < copy.ranges && copy.offsets[range] + range < end;
    const RowPiece piece = here ? PieceOf(copy, range, item, end) : RowPiece{};
    const unsigned longer = __ballot_sync(kAllLanes, piece.count > kShortRows);
    const unsigned shorter = __ballot_sync(kAllLanes, piece.count != 0) & ~longer;
    for (unsigned left = longer; left != 0; left &= left - 1) {
      CopyByWarp<kBits>(copy, piece.FromLane(__ffs(static_cast<int>(left)) - 1), lane);
    }
    if (shorter >> lane & 1) short_lanes[__popc(shorter & ((1u << lane) - 1))] = lane;
    __syncwarp();
    const int count = __popc(shorter);
    for (int i = 0; i < count; i += 8) {
      const bool there = i + quad < count;
      RowPiece few = piece.FromLane(there ? short_lanes[i + quad] : 0);
      if (!there) few.count = 0;
      CopyByQuad<kBits>(copy, few, lane);
    }
    __syncwarp();
    if (!__all_sync(kAllLanes, here)) return;
  }
}

template <int kBits>
absl::Status LaunchCopyRows(const RowCopy& copy, cudaStream_t stream) {
  const uint64_t warps = (copy.max_items + copy.warp_items - 1) / copy.warp_items;
  const uint64_t blocks = (warps * 32 + kCopyThreads - 1) / kCopyThreads;
  CAIRN_RETURN_IF_LAUNCH_FAILS("CopyRowsKernel",
                               LaunchShape{static_cast<unsigned>(blocks), kCopyThreads}, stream,
                               CopyRowsKernel<kBits>, copy);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceBuffer<uint32_t>> SampleLeaves(const LeafCut& cut, size_t size,
                                                    cudaStream_t stream) {
  DeviceBuffer<uint32_t> samples;
  const size_t count = (size + kLeafSample - 1) / kLeafSample + 1;
  RETURN_IF_ERROR(Resize(&samples, count, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteSamples", SimpleShape(cut.primary), stream, WriteSamples,
                               cut.first.data(), cut.primary, samples.data(), count);
  return samples;
}

absl::Status CopyRowsFromLeaves(const PackedView& view, const uint32_t* samples,
                                const Position* begin, const uint64_t* offsets, size_t queries,
                                uint64_t rows, Order order, RowId* row_ids, cudaStream_t stream) {
  const uint64_t most = queries + rows;
  const uint64_t warp_items = std::clamp(most / kWarpsWanted, kMinWarpItems, kMaxWarpItems);
  const RowCopy copy = {view.leaves, samples, begin,      offsets,
                        queries,     most,    warp_items, order == Order::kDescending,
                        row_ids};
  switch (view.bits) {
    case 16:
      return LaunchCopyRows<16>(copy, stream);
    case 32:
      return LaunchCopyRows<32>(copy, stream);
    case 48:
      return LaunchCopyRows<48>(copy, stream);
    case 64:
      return LaunchCopyRows<64>(copy, stream);
    default:
      return LaunchCopyRows<128>(copy, stream);
  }
}

}  // namespace cairn::gpu
