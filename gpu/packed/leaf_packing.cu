#include "gpu/packed/leaf_packing.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <limits>
#include <utility>

#include "gpu/packed/leaf_start.cuh"
#include "gpu/packed/leaf_walk.cuh"
#include "gpu/packed/packed_size.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr unsigned kEveryLane = 0xffffffffu;

// ---- Distinct keys

// Whether key i is the first of equal keys.
template <typename Key>
struct IsHead {
  const Key* keys;
  __device__ Position operator()(size_t i) const {
    return i == 0 || keys[i] != keys[i - 1] ? 1 : 0;
  }
};

// ranks[i] = the number of distinct keys up to entry i.
template <typename Key>
__global__ void ScatterHeads(const Key* keys, const Position* ranks, size_t size, Key* distinct,
                             Position* first_entry) {
  ForEachIndex(size, [=](size_t i) {
    if (i != 0 && keys[i] == keys[i - 1]) return;
    distinct[ranks[i] - 1] = keys[i];
    first_entry[ranks[i] - 1] = static_cast<Position>(i);
  });
}

// ---- Marks

// One bit per key: whether it differs from the key before it, and whether it is in another block.
// The grid must consist of whole warps.
template <typename Key>
__global__ void MarkKeyStarts(const Key* keys, size_t size, int bits, uint32_t* cells,
                              uint32_t* blocks) {
  ForEachIndex((size + 31) / 32 * 32, [=](size_t i) {
    const bool differs = i < size && (i == 0 || keys[i] != keys[i - 1]);
    const bool block = differs && (i == 0 || BlockOf(keys[i], bits) != BlockOf(keys[i - 1], bits));
    const uint32_t cell_word = __ballot_sync(kEveryLane, differs);
    const uint32_t block_word = __ballot_sync(kEveryLane, block);
    if (i % 32 != 0) return;
    cells[i / 32] = cell_word;
    blocks[i / 32] = block_word;
  });
}

// ---- Cut

// The number of leaves before a tile, which may be too many to be numbered.
struct TileLeaves {
  uint64_t primary, linked;
};
struct AddTileLeaves {
  __host__ __device__ TileLeaves operator()(TileLeaves a, TileLeaves b) const {
    return {a.primary + b.primary, a.linked + b.linked};
  }
};

// Sums over all tiles, computed in addition to the leaves.
struct CutSums {
  unsigned long long chained_keys;
  unsigned long long links_followed;
  unsigned long long longest_chain;
};

// The input of the cut, for kernels; each thread walks over one tile.
template <typename Key>
struct CutInput {
  const Key* keys;
  size_t size;
  const uint32_t* cells;
  const uint32_t* blocks;
  int bits;
  int capacity;
  bool repeat;

  __host__ __device__ size_t tiles() const {
    return (size + WalkBits::kTile - 1) / WalkBits::kTile;
  }
  unsigned thread_blocks() const {
    return static_cast<unsigned>((tiles() + WalkBits::kThreads - 1) / WalkBits::kThreads);
  }
  // Called by the whole block.
  __device__ LeafWalk<Key> Walk(WalkBits::Staged& staged_cells,
                                WalkBits::Staged& staged_blocks) const {
    const size_t first_tile = size_t{blockIdx.x} * WalkBits::kThreads;
    const LeafWalk<Key> walk = {keys,
                                size,
                                WalkBits(cells, MarkWords(size), first_tile, staged_cells),
                                WalkBits(blocks, MarkWords(size), first_tile, staged_blocks),
                                bits,
                                capacity,
                                repeat};
    __syncthreads();
    return walk;
  }
};

template <typename Key>
__global__ void __launch_bounds__(WalkBits::kThreads)
    CountLeaves(CutInput<Key> input, TileLeaves* counts, CutSums* sums) {
  __shared__ WalkBits::Staged cells, blocks;
  const LeafWalk<Key> walk = input.Walk(cells, blocks);
  const size_t tile = size_t{blockIdx.x} * WalkBits::kThreads + threadIdx.x;
  if (tile >= input.tiles()) return;
  TileLeaves count = {0, 0};
  unsigned long long chained = 0, followed = 0, chain = 0, longest = 0;
  walk.ForEachLeaf(
      tile, [&](size_t) { ++count.primary; },
      [&](size_t first, size_t end, bool is_first) {
        ++count.linked;
        chain = is_first ? 1 : chain + 1;
        chained += is_first ? end - first : 0;
        followed += end - first;
        longest = max(longest, chain);
      });
  counts[tile] = count;
  if (chained != 0) {
    atomicAdd(&sums->chained_keys, chained);
    atomicAdd(&sums->links_followed, followed);
    atomicMax(&sums->longest_chain, longest);
  }
}

// Leaves of a block's tiles are collected in shared memory, as positions within the tiles' keys. If
// the threads wrote them directly, their writes would be scattered, which took ten times as long.
// The capacity is enough for leaves of three keys, and some of fewer.
constexpr size_t kCollected = 14336;
using Collected = uint16_t;
static_assert(WalkBits::kThreads * WalkBits::kTile - 1 <= std::numeric_limits<Collected>::max());

template <typename Key>
__global__ void __launch_bounds__(WalkBits::kThreads)
    WriteCut(CutInput<Key> input, const TileLeaves* up_to, size_t primary, Position* first,
             LinkedLeaf* linked) {
  __shared__ WalkBits::Staged cells, blocks;
  __shared__ Collected collected[kCollected];
  const LeafWalk<Key> walk = input.Walk(cells, blocks);
  const size_t first_tile = size_t{blockIdx.x} * WalkBits::kThreads;
  const size_t end_tile = min(first_tile + WalkBits::kThreads, input.tiles());
  const size_t begin = first_tile == 0 ? 0 : up_to[first_tile - 1].primary;
  const size_t end = up_to[end_tile - 1].primary;
  const bool collect = end - begin <= kCollected;
  const size_t tile = first_tile + threadIdx.x;
  if (tile < end_tile) {
    TileLeaves next = tile == 0 ? TileLeaves{0, 0} : up_to[tile - 1];
    walk.ForEachLeaf(
        tile,
        [&](size_t i) {
          const size_t leaf = next.primary++;
          if (collect) {
            collected[leaf - begin] = static_cast<Collected>(i - first_tile * WalkBits::kTile);
          } else {
            first[leaf] = static_cast<Position>(i);
          }
        },
        [&](size_t i, size_t chain_end, bool is_first) {
          const size_t from = is_first ? next.primary - 1 : primary + next.linked - 1;
          linked[next.linked++] = {static_cast<Position>(i), static_cast<Position>(chain_end),
                                   static_cast<uint32_t>(from)};
        });
  }
  if (!collect) return;
  __syncthreads();
  for (size_t leaf = begin + threadIdx.x; leaf < end; leaf += WalkBits::kThreads) {
    first[leaf] = static_cast<Position>(first_tile * WalkBits::kTile + collected[leaf - begin]);
  }
}

// ---- Separators

template <typename Key>
__global__ void WriteSeparators(const Key* keys, size_t size, const Position* first, size_t primary,
                                int bits, Key* separators) {
  ForEachIndex(primary - 1, [=](size_t leaf) {
    const LeafStart<Key> next = FindLeafStart(keys, size, first, leaf + 1, bits);
    separators[leaf] = next.least - 1 + (next.greatest - next.least) / 2;
  });
}

}  // namespace

template <typename Key>
absl::StatusOr<DistinctKeys<Key>> FindDistinctKeys(DeviceRun<Key> run, size_t size,
                                                   cudaStream_t stream) {
  DistinctKeys<Key> distinct;
  const size_t entries = run.size();
  if (size == entries) {
    distinct.keys = std::move(run.keys);
    distinct.row_ids = std::move(run.row_ids);
    return distinct;
  }
  DeviceBuffer<Position> ranks;
  RETURN_IF_ERROR(Resize(&ranks, entries, stream));
  const auto heads = thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                                     IsHead<Key>{run.keys.data()});
  RETURN_IF_ERROR(
      InclusiveScan(heads, ranks.data(), entries, ::cuda::std::plus<Position>(), stream));
  RETURN_IF_ERROR(Resize(&distinct.keys, size, stream));
  RETURN_IF_ERROR(Resize(&distinct.first_entry, size + 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("ScatterHeads", SimpleShape(entries), stream, ScatterHeads<Key>,
                               run.keys.data(), ranks.data(), entries, distinct.keys.data(),
                               distinct.first_entry.data());
  const Position end = static_cast<Position>(entries);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(distinct.first_entry.data() + size, &end, sizeof(end),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  distinct.row_ids = std::move(run.row_ids);
  return distinct;
}

absl::StatusOr<KeyMarks> AllocateMarks(size_t size, cudaStream_t stream) {
  KeyMarks marks;
  for (DeviceBuffer<uint32_t>* bits : {&marks.cells, &marks.blocks}) {
    RETURN_IF_ERROR(Resize(bits, MarkWords(size), stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(bits->data(), 0, bits->bytes(), stream));
  }
  return marks;
}

template <typename Key>
absl::StatusOr<KeyMarks> MarkBlocks(const Key* keys, size_t size, int bits, cudaStream_t stream) {
  ASSIGN_OR_RETURN(KeyMarks marks, AllocateMarks(size, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("MarkKeyStarts", SimpleShape(size), stream, MarkKeyStarts<Key>, keys,
                               size, bits, marks.cells.data(), marks.blocks.data());
  return marks;
}

template <typename Key>
absl::StatusOr<LeafCut> CutLeavesOf(int capacity, const Key* keys, size_t size, int bits,
                                    const KeyMarks& marks, bool repeat, cudaStream_t stream) {
  LeafCut cut;
  cut.bits = bits;
  const CutInput<Key> input = {keys,     size,  marks.cells.data(), marks.blocks.data(), bits,
                               capacity, repeat};
  DeviceBuffer<TileLeaves> tiles;
  DeviceBuffer<CutSums> sums;
  RETURN_IF_ERROR(Resize(&tiles, input.tiles(), stream));
  RETURN_IF_ERROR(Resize(&sums, 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(sums.data(), 0, sums.bytes(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("CountLeaves",
                               LaunchShape{input.thread_blocks(), WalkBits::kThreads}, stream,
                               CountLeaves<Key>, input, tiles.data(), sums.data());
  RETURN_IF_ERROR(
      InclusiveScan(tiles.data(), tiles.data(), input.tiles(), AddTileLeaves(), stream));
  Key greatest;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&greatest, keys + size - 1, sizeof(Key), cudaMemcpyDeviceToHost, stream));
  ASSIGN_OR_RETURN(const CutSums all, ReadBack(sums.data(), stream));
  ASSIGN_OR_RETURN(const TileLeaves leaves, ReadBack(tiles.data() + input.tiles() - 1, stream));
  cut.chained_keys = all.chained_keys;
  cut.links_followed = all.links_followed;
  cut.longest_chain = all.longest_chain;
  // One more leaf for the blocks after that of the greatest key.
  const bool trailing = BlockOf(greatest, bits) != BlockOf(static_cast<Key>(~Key{0}), bits);
  cut.primary = leaves.primary + (trailing ? 1 : 0);
  RETURN_IF_ERROR(CheckLeafCount(cut.primary + leaves.linked, bits));
  RETURN_IF_ERROR(Resize(&cut.first, cut.primary + 1, stream));
  RETURN_IF_ERROR(Resize(&cut.linked, leaves.linked, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteCut", LaunchShape{input.thread_blocks(), WalkBits::kThreads},
                               stream, WriteCut<Key>, input, tiles.data(), cut.primary,
                               cut.first.data(), cut.linked.data());
  const Position end[2] = {static_cast<Position>(size), static_cast<Position>(size)};
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(cut.first.data() + leaves.primary, end,
                                             (trailing ? 2 : 1) * sizeof(Position),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return cut;
}

template <typename Key>
absl::StatusOr<LeafCut> CutLeaves(const Key* keys, size_t size, int bits, const KeyMarks& marks,
                                  bool repeat, cudaStream_t stream) {
  return CutLeavesOf(LeafEntries(bits), keys, size, bits, marks, repeat, stream);
}

template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                 cudaStream_t stream) {
  DeviceBuffer<Key> separators;
  RETURN_IF_ERROR(Resize(&separators, cut.primary - 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteSeparators", SimpleShape(cut.primary), stream,
                               WriteSeparators<Key>, keys, size, cut.first.data(), cut.primary,
                               cut.bits, separators.data());
  return separators;
}

#define CAIRN_INSTANTIATE(Key)                                                                  \
  template absl::StatusOr<DistinctKeys<Key>> FindDistinctKeys(DeviceRun<Key>, size_t,           \
                                                              cudaStream_t);                    \
  template absl::StatusOr<KeyMarks> MarkBlocks(const Key*, size_t, int, cudaStream_t);          \
  template absl::StatusOr<LeafCut> CutLeaves(const Key*, size_t, int, const KeyMarks&, bool,    \
                                             cudaStream_t);                                     \
  template absl::StatusOr<LeafCut> CutLeavesOf(int, const Key*, size_t, int, const KeyMarks&,   \
                                               bool, cudaStream_t);                             \
  template absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key*, size_t, const LeafCut&, \
                                                            cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
CAIRN_INSTANTIATE(WideKey);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
