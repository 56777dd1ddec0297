#include "gpu/leaf_packing.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <utility>

#include "gpu/cuda_status.h"
#include "gpu/device_algorithms.cuh"
#include "gpu/launch.h"
#include "gpu/leaf_start.cuh"
#include "gpu/leaf_walk.cuh"

namespace cairn::gpu {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

template <typename Key>
constexpr int KeyBits() {
  return static_cast<int>(sizeof(Key)) * 8;
}

constexpr int LeafCapacity(int bits) {
  return static_cast<int>(bits == 16   ? LeafLayout<16>::kEntries
                          : bits == 32 ? LeafLayout<32>::kEntries
                          : bits == 48 ? LeafLayout<48>::kEntries
                                       : LeafLayout<64>::kEntries);
}

// ---- Distinct keys

// Whether key i is the first of its like.
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

// ---- Survey

struct SurveyCounts {
  static constexpr int kWidths = KeySurvey<uint64_t>::kWidths;
  unsigned long long distinct, blocks[kWidths], gaps[kWidths];
};

template <typename Key>
__global__ void CountBlocks(const Key* keys, size_t size, SurveyCounts* counts) {
  constexpr int kWidths = SurveyCounts::kWidths;
  unsigned distinct = 0, block_counts[kWidths] = {}, gap_counts[kWidths] = {};
  ForEachIndex(size, [&](size_t i) {
    const Key key = keys[i], before = i == 0 ? Key{0} : keys[i - 1];
    distinct += i == 0 || key != before;
#pragma unroll
    for (int width = 0; width < kWidths; ++width) {
      const int bits = 16 * (width + 1);
      if (bits >= KeyBits<Key>()) continue;
      const Key step = (key >> bits) - (before >> bits);
      block_counts[width] += i == 0 || step != 0;
      gap_counts[width] += i == 0 ? step != 0 : step > 1;
    }
  });
  const auto add = [](unsigned count, unsigned long long* sum) {
    count = __reduce_add_sync(kAllLanes, count);
    if (threadIdx.x % 32 == 0 && count != 0) atomicAdd(sum, count);
  };
  add(distinct, &counts->distinct);
#pragma unroll
  for (int width = 0; width < kWidths; ++width) {
    add(block_counts[width], &counts->blocks[width]);
    add(gap_counts[width], &counts->gaps[width]);
  }
}

// ---- Marks

// One bit a key: whether it is of another block than the one before it. The grid's threads must be
// whole warps.
template <typename Key>
__global__ void MarkBlockStarts(const Key* keys, size_t size, int bits, uint32_t* blocks) {
  ForEachIndex((size + 31) / 32 * 32, [=](size_t i) {
    const bool starts =
        i < size && (i == 0 || BlockOf(keys[i], bits) != BlockOf(keys[i - 1], bits));
    const uint32_t word = __ballot_sync(kAllLanes, starts);
    if (i % 32 == 0) blocks[i / 32] = word;
  });
}

// ---- Cut

// How many leaves the tiles before one have.
struct TileLeaves {
  uint32_t primary, linked;
};
struct AddTileLeaves {
  __host__ __device__ TileLeaves operator()(TileLeaves a, TileLeaves b) const {
    return {a.primary + b.primary, a.linked + b.linked};
  }
};

// Sums over all tiles, beside the leaves themselves.
struct CutSums {
  unsigned long long chained_keys;
  unsigned long long longest_chain;
};

// What is cut, for kernels: a thread walks over a tile.
template <typename Key>
struct CutInput {
  const Key* keys;
  size_t size;
  const uint32_t* cells;
  const uint32_t* blocks;
  int bits;

  __host__ __device__ size_t tiles() const {
    return (size + WalkBits::kTile - 1) / WalkBits::kTile;
  }
  unsigned thread_blocks() const {
    return static_cast<unsigned>((tiles() + WalkBits::kThreads - 1) / WalkBits::kThreads);
  }
  // By the whole block.
  __device__ LeafWalk<Key> Walk(WalkBits::Staged& staged_cells,
                                WalkBits::Staged& staged_blocks) const {
    const size_t first_tile = size_t{blockIdx.x} * WalkBits::kThreads;
    const LeafWalk<Key> walk = {keys,
                                size,
                                WalkBits(cells, MarkWords(size), first_tile, staged_cells),
                                WalkBits(blocks, MarkWords(size), first_tile, staged_blocks),
                                bits,
                                LeafCapacity(bits)};
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
  unsigned long long chained = 0, chain = 0, longest = 0;
  walk.ForEachLeaf(
      tile, [&](size_t) { ++count.primary; },
      [&](size_t first, size_t end, bool is_first) {
        ++count.linked;
        chain = is_first ? 1 : chain + 1;
        chained += is_first ? end - first : 0;
        longest = max(longest, chain);
      });
  counts[tile] = count;
  if (chained != 0) {
    atomicAdd(&sums->chained_keys, chained);
    atomicMax(&sums->longest_chain, longest);
  }
}

// Leaves of a block's tiles that are collected in shared memory: written by the threads that find
// them, they would go to as many places at once, which took ten times as long.
constexpr size_t kCollected = 7168;

template <typename Key>
__global__ void __launch_bounds__(WalkBits::kThreads)
    WriteCut(CutInput<Key> input, const TileLeaves* up_to, size_t primary, Position* first,
             LinkedLeaf* linked) {
  __shared__ WalkBits::Staged cells, blocks;
  __shared__ Position collected[kCollected];
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
          const uint32_t leaf = next.primary++;
          (collect ? collected[leaf - begin] : first[leaf]) = static_cast<Position>(i);
        },
        [&](size_t i, size_t chain_end, bool is_first) {
          const uint32_t from =
              is_first ? next.primary - 1 : static_cast<uint32_t>(primary) + next.linked - 1;
          linked[next.linked++] = {static_cast<Position>(i), static_cast<Position>(chain_end),
                                   from};
        });
  }
  if (!collect) return;
  __syncthreads();
  for (size_t leaf = begin + threadIdx.x; leaf < end; leaf += WalkBits::kThreads) {
    first[leaf] = collected[leaf - begin];
  }
}

// ---- Fill

// Leaves that a block fills, and the keys that it keeps in shared memory meanwhile.
constexpr int kFillThreads = 128;
constexpr size_t kStaged = kFillThreads * LeafLayout<16>::kEntries;

template <typename Key>
struct LeafSource {
  const Key* keys;
  const Position* first_entry;  // null: key i is entry i
  const RowId* row_ids;

  __device__ RowId row_id(size_t i) const {
    return row_ids[first_entry == nullptr ? i : first_entry[i]];
  }
};

__device__ inline void StoreLeaf(const uint32_t (&words)[16], Leaf* leaf) {
  uint4* out = reinterpret_cast<uint4*>(leaf);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[i] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
  }
}

// Fills a leaf with the first of the keys [first, end), as many as go in; key(i) and row(i) give
// key first + i.
template <int kBits, typename GetKey, typename GetRow>
__device__ void FillLeaf(size_t first, size_t end, RowId link, GetKey key, GetRow row, Leaf* leaf) {
  constexpr int kEntries = static_cast<int>(LeafLayout<kBits>::kEntries);
  LeafWords<kBits> words(static_cast<Position>(first));
  const size_t size = end - first;
#pragma unroll
  for (int i = 0; i < kEntries; ++i) {
    if (static_cast<size_t>(i) < size) {
      words.SetKey(i, key(i));
      words.SetRow(i, row(i));
    }
  }
  if (size > kEntries) {
    words.SetKey(kEntries - 1, 0);
    words.SetRow(kEntries - 1, link);
  }
  StoreLeaf(words.words, leaf);
}

// Fills the primary leaves; where one links to another, FillLinkedLeaves says to which.
template <int kBits, typename Key>
__global__ void __launch_bounds__(kFillThreads)
    FillPrimaryLeaves(LeafSource<Key> source, const Position* first, size_t primary, Leaf* leaves) {
  __shared__ Key staged_keys[kStaged];
  __shared__ RowId staged_rows[kStaged];
  const size_t begin = size_t{blockIdx.x} * kFillThreads;
  const size_t end = min(begin + kFillThreads, primary);
  const size_t first_key = first[begin], end_key = first[end];
  // Chains may make the keys too many to be kept.
  const bool staged = end_key - first_key <= kStaged;
  if (staged) {
    for (size_t i = first_key + threadIdx.x; i < end_key; i += kFillThreads) {
      staged_keys[i - first_key] = source.keys[i];
      staged_rows[i - first_key] = source.row_id(i);
    }
    __syncthreads();
  }
  const size_t leaf = begin + threadIdx.x;
  if (leaf >= end) return;
  const size_t from = first[leaf], to = first[leaf + 1];
  if (staged) {
    const size_t offset = from - first_key;
    FillLeaf<kBits>(
        from, to, kNoRow, [&](int i) { return staged_keys[offset + i]; },
        [&](int i) { return staged_rows[offset + i]; }, leaves + leaf);
  } else {
    FillLeaf<kBits>(
        from, to, kNoRow, [&](int i) { return source.keys[from + i]; },
        [&](int i) { return source.row_id(from + i); }, leaves + leaf);
  }
}

template <int kBits, typename Key>
__global__ void FillLinkedLeaves(LeafSource<Key> source, const LinkedLeaf* linked, size_t count,
                                 size_t primary, Leaf* leaves) {
  using Layout = LeafLayout<kBits>;
  ForEachIndex(count, [=](size_t i) {
    const LinkedLeaf leaf = linked[i];
    const RowId number = static_cast<RowId>(primary + i);
    FillLeaf<kBits>(
        leaf.first, leaf.end, number + 1, [&](int k) { return source.keys[leaf.first + k]; },
        [&](int k) { return source.row_id(leaf.first + k); }, leaves + number);
    if (leaf.from < primary) {
      reinterpret_cast<uint32_t*>(
          leaves + leaf.from)[Layout::kRowsOffset / 4 + Layout::kEntries - 1] = number;
    }
  });
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
  if (absl::Status s = Resize(&ranks, entries, stream); !s.ok()) return s;
  const auto heads = thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                                     IsHead<Key>{run.keys.data()});
  absl::Status scanned =
      InclusiveScan(heads, ranks.data(), entries, ::cuda::std::plus<Position>(), stream);
  if (!scanned.ok()) return scanned;
  if (absl::Status s = Resize(&distinct.keys, size, stream); !s.ok()) return s;
  if (absl::Status s = Resize(&distinct.first_entry, size + 1, stream); !s.ok()) return s;
  ScatterHeads<<<SimpleBlocks(entries), kSimpleThreads, 0, stream>>>(
      run.keys.data(), ranks.data(), entries, distinct.keys.data(), distinct.first_entry.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("ScatterHeads");
  const Position end = static_cast<Position>(entries);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(distinct.first_entry.data() + size, &end, sizeof(end),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  distinct.row_ids = std::move(run.row_ids);
  return distinct;
}

template <typename Key>
int KeySurvey<Key>::BestBits(size_t size) const {
  int best = KeyBits<Key>();
  double fewest = static_cast<double>(size) / LeafCapacity(best);
  for (int width = 0; 16 * (width + 1) < KeyBits<Key>(); ++width) {
    const int bits = 16 * (width + 1);
    // A block's last leaf is half empty.
    const double leaves = static_cast<double>(size) / LeafCapacity(bits) +
                          0.5 * static_cast<double>(blocks[width]) +
                          static_cast<double>(gaps[width]);
    if (leaves < fewest) best = bits, fewest = leaves;
  }
  return best;
}

template <typename Key>
absl::StatusOr<KeySurvey<Key>> SurveyKeys(const Key* keys, size_t size, cudaStream_t stream) {
  KeySurvey<Key> survey = {};
  DeviceBuffer<SurveyCounts> counts;
  if (absl::Status s = Resize(&counts, 1, stream); !s.ok()) return s;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream));
  CountBlocks<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(keys, size, counts.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountBlocks");
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&survey.least, keys, sizeof(Key), cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(&survey.greatest, keys + size - 1, sizeof(Key),
                                             cudaMemcpyDeviceToHost, stream));
  const absl::StatusOr<SurveyCounts> read = ReadBack(counts.data(), stream);
  if (!read.ok()) return read.status();
  survey.distinct = read->distinct;
  for (int width = 0; width < KeySurvey<Key>::kWidths; ++width) {
    survey.blocks[width] = read->blocks[width];
    survey.gaps[width] = read->gaps[width];
  }
  return survey;
}

absl::StatusOr<KeyMarks> AllocateMarks(size_t size, cudaStream_t stream) {
  KeyMarks marks;
  for (DeviceBuffer<uint32_t>* bits : {&marks.cells, &marks.blocks}) {
    if (absl::Status s = Resize(bits, MarkWords(size), stream); !s.ok()) return s;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(bits->data(), 0, bits->bytes(), stream));
  }
  return marks;
}

template <typename Key>
absl::StatusOr<KeyMarks> MarkBlocks(const Key* keys, size_t size, int bits, cudaStream_t stream) {
  absl::StatusOr<KeyMarks> marks = AllocateMarks(size, stream);
  if (!marks.ok()) return marks;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemsetAsync(marks->cells.data(), 0xff, marks->cells.bytes(), stream));
  MarkBlockStarts<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(keys, size, bits,
                                                                     marks->blocks.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("MarkBlockStarts");
  return marks;
}

template <typename Key>
absl::StatusOr<LeafCut> CutLeaves(const Key* keys, size_t size, int bits, const KeyMarks& marks,
                                  cudaStream_t stream) {
  LeafCut cut;
  cut.bits = bits;
  const CutInput<Key> input = {keys, size, marks.cells.data(), marks.blocks.data(), bits};
  DeviceBuffer<TileLeaves> tiles;
  DeviceBuffer<CutSums> sums;
  if (absl::Status s = Resize(&tiles, input.tiles(), stream); !s.ok()) return s;
  if (absl::Status s = Resize(&sums, 1, stream); !s.ok()) return s;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(sums.data(), 0, sums.bytes(), stream));
  CountLeaves<<<input.thread_blocks(), WalkBits::kThreads, 0, stream>>>(input, tiles.data(),
                                                                        sums.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountLeaves");
  absl::Status scanned =
      InclusiveScan(tiles.data(), tiles.data(), input.tiles(), AddTileLeaves(), stream);
  if (!scanned.ok()) return scanned;
  Key greatest;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&greatest, keys + size - 1, sizeof(Key), cudaMemcpyDeviceToHost, stream));
  const absl::StatusOr<CutSums> all = ReadBack(sums.data(), stream);
  if (!all.ok()) return all.status();
  const absl::StatusOr<TileLeaves> leaves = ReadBack(tiles.data() + input.tiles() - 1, stream);
  if (!leaves.ok()) return leaves.status();
  cut.chained_keys = all->chained_keys;
  cut.longest_chain = all->longest_chain;
  // One leaf more for the blocks behind the greatest key's.
  const bool trailing = BlockOf(greatest, bits) != BlockOf(static_cast<Key>(~Key{0}), bits);
  cut.primary = leaves->primary + (trailing ? 1 : 0);
  if (absl::Status s = Resize(&cut.first, cut.primary + 1, stream); !s.ok()) return s;
  if (absl::Status s = Resize(&cut.linked, leaves->linked, stream); !s.ok()) return s;
  WriteCut<<<input.thread_blocks(), WalkBits::kThreads, 0, stream>>>(
      input, tiles.data(), cut.primary, cut.first.data(), cut.linked.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("WriteCut");
  const Position end[2] = {static_cast<Position>(size), static_cast<Position>(size)};
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(cut.first.data() + leaves->primary, end,
                                             (trailing ? 2 : 1) * sizeof(Position),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return cut;
}

namespace {

template <int kBits, typename Key>
absl::Status FillLeavesOf(const DistinctKeys<Key>& keys, const LeafCut& cut, Leaf* leaves,
                          cudaStream_t stream) {
  const LeafSource<Key> source = {
      keys.keys.data(), keys.repeats() ? keys.first_entry.data() : nullptr, keys.row_ids.data()};
  const size_t blocks = (cut.primary + kFillThreads - 1) / kFillThreads;
  FillPrimaryLeaves<kBits><<<static_cast<unsigned>(blocks), kFillThreads, 0, stream>>>(
      source, cut.first.data(), cut.primary, leaves);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillPrimaryLeaves");
  if (cut.linked.size() == 0) return absl::OkStatus();
  FillLinkedLeaves<kBits><<<SimpleBlocks(cut.linked.size()), kSimpleThreads, 0, stream>>>(
      source, cut.linked.data(), cut.linked.size(), cut.primary, leaves);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillLinkedLeaves");
  return absl::OkStatus();
}

}  // namespace

template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<Key>& keys, const LeafCut& cut,
                                              cudaStream_t stream) {
  DeviceBuffer<Leaf> leaves;
  if (absl::Status s = Resize(&leaves, cut.leaves(), stream); !s.ok()) return s;
  absl::Status filled;
  if (cut.bits == 16) {
    filled = FillLeavesOf<16>(keys, cut, leaves.data(), stream);
  } else if (cut.bits == 32) {
    filled = FillLeavesOf<32>(keys, cut, leaves.data(), stream);
  } else if constexpr (sizeof(Key) == 8) {
    filled = cut.bits == 48 ? FillLeavesOf<48>(keys, cut, leaves.data(), stream)
                            : FillLeavesOf<64>(keys, cut, leaves.data(), stream);
  }
  if (!filled.ok()) return filled;
  return leaves;
}

template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                 cudaStream_t stream) {
  DeviceBuffer<Key> separators;
  if (absl::Status s = Resize(&separators, cut.primary - 1, stream); !s.ok()) return s;
  WriteSeparators<<<SimpleBlocks(cut.primary), kSimpleThreads, 0, stream>>>(
      keys, size, cut.first.data(), cut.primary, cut.bits, separators.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("WriteSeparators");
  return separators;
}

#define CAIRN_INSTANTIATE(Key)                                                                     \
  template absl::StatusOr<DistinctKeys<Key>> FindDistinctKeys(DeviceRun<Key>, size_t,              \
                                                              cudaStream_t);                       \
  template struct KeySurvey<Key>;                                                                  \
  template absl::StatusOr<KeySurvey<Key>> SurveyKeys(const Key*, size_t, cudaStream_t);            \
  template absl::StatusOr<KeyMarks> MarkBlocks(const Key*, size_t, int, cudaStream_t);             \
  template absl::StatusOr<LeafCut> CutLeaves(const Key*, size_t, int, const KeyMarks&,             \
                                             cudaStream_t);                                        \
  template absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<Key>&, const LeafCut&, \
                                                         cudaStream_t);                            \
  template absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key*, size_t, const LeafCut&,    \
                                                            cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
