#include <algorithm>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/strings/string_query.cuh"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_tree.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kGroupsInBlock = kStringThreads / kGroupLanes;
// Blocks a multiprocessor: several times what run at once, so that the last ones end together.
constexpr int kBlocks = 32;
// Blocks that run at once on a multiprocessor, which bounds a thread's registers. Of 8, 6 and 5, on
// an H200: 16 digits 13.3, 12.1, 11.3 G/s; lower bounds of URLs, which are longer, 4.2, 4.8, 4.7.
constexpr int BlocksAtOnce(int chunks) {
  return chunks == kFewChunks ? 8 : 6;
}

// A query that has to be searched again, by a prefix, from the root.
struct Again {
  uint32_t query;
  uint32_t bits;
  bool ones;
};

// Those of a batch.
struct AgainList {
  Again* queries;   // room for all
  uint32_t* count;  // starts at 0
};

// A slot of a node, where a query came to.
struct Place {
  uint32_t node;
  uint32_t base, meta;  // the node's words 1 and 2
  uint32_t slot;

  __device__ bool in_leaf() const { return (meta & StringNode::kLeaf) != 0; }
  __device__ uint32_t child() const {
    return base + __popc((meta & StringNode::kStarts) << (31 - slot)) - 1;
  }
  __device__ uint32_t key() const { return base + slot; }
};

// The bits of a group's query, for a tree none of whose nodes looks at any behind kChunks * 32 - 8
// bytes: in shared memory, as words whose highest bit is the first. A bit is a load and a shift.
template <int kChunks>
class StagedBits {
 public:
  static constexpr int kWords = 8 * kChunks - 2;
  static constexpr bool kFar = false;  // whether a node's first bit may have high bits

  __device__ StagedBits(const StringQuery& query, const QueryUnits<kChunks>& units, int lane) {
    __shared__ uint32_t staged[kGroupsInBlock][kWords | 1];  // odd: groups begin at other banks
    uint32_t* const words = staged[threadIdx.x / kGroupLanes];
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int j = c * kGroupLanes + lane;
      const uint64_t unit = static_cast<uint32_t>(j) < units.size ? units.units[c] : query.Filler();
      if (j == 0) continue;
      words[2 * j - 2] = __byte_perm(static_cast<uint32_t>(unit), 0, 0x0123);
      words[2 * j - 1] = __byte_perm(static_cast<uint32_t>(unit >> 32), 0, 0x0123);
    }
    __syncwarp();
    words_ = words;
  }
  __device__ uint32_t operator[](uint32_t bit) const {
    return __funnelshift_r(words_[bit / 32], 0, ~bit) & 1;
  }

 private:
  const uint32_t* words_;
};

// The same where the query is: for longer keys.
template <int kChunks>
class QueryBits {
 public:
  static constexpr bool kFar = true;

  __device__ QueryBits(const StringQuery& query, const QueryUnits<kChunks>&, int) : query_(query) {}
  __device__ uint32_t operator[](uint32_t bit) const { return query_.Bit(bit); }

 private:
  const StringQuery& query_;
};

// The bits of a query before `end`, then zeros or ones: the least, or the greatest, key that starts
// with them.
template <typename Bits>
struct PrefixBits {
  static constexpr bool kFar = Bits::kFar;
  const Bits& bits;
  uint32_t end;
  bool ones;

  __device__ uint32_t operator[](uint32_t bit) const {
    return bit < end ? bits[bit] : ones ? 1 : 0;
  }
};

// A warp's part in a search: which lane of its group a thread is, and where the group's lanes
// begin.
struct Searcher {
  const StringTreeView& tree;
  const int lane, shift;
  uint32_t root_bits[6];     // of places lane, lane + 4, …
  uint32_t root_places = 0;  // which of these there are

  __device__ explicit Searcher(const StringTreeView& view)
      : tree(view),
        lane(threadIdx.x % kGroupLanes),
        shift(threadIdx.x % 32 / kGroupLanes * kGroupLanes) {
#pragma unroll
    for (int j = 0; j < 6; ++j) {
      const uint32_t bit = __ldg(view.root_bits + lane + kGroupLanes * j);
      root_bits[j] = bit == StringTree::kNoRootBit ? 0 : bit;
      root_places |= (bit == StringTree::kNoRootBit ? 0u : 1u) << (kGroupLanes * j);
    }
  }

  // All of what follows by a warp; the same in all lanes of a group.

  // The node that the root leads to.
  template <typename Bits>
  __device__ uint32_t Enter(const Bits& bits) const {
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 6; ++j) partial |= bits[root_bits[j]] << (kGroupLanes * j);
    partial = (partial & root_places) << lane;
    partial |= __shfl_xor_sync(kAllLanes, partial, 1, kGroupLanes);
    partial |= __shfl_xor_sync(kAllLanes, partial, 2, kGroupLanes);
    return __ldg(tree.root + partial);
  }

  // The last slot of the node whose sparse partial key is in the query's.
  template <typename Bits>
  __device__ Place Visit(uint32_t node, const Bits& bits) const {
    uint4 chunk = __ldg(reinterpret_cast<const uint4*>(tree.nodes + node) + lane);
    Place place = {node, __shfl_sync(kAllLanes, chunk.y, 0, kGroupLanes),
                   __shfl_sync(kAllLanes, chunk.z, 0, kGroupLanes), 0};
    uint32_t first_bit = place.meta >> 20 & 0x7FF;
    if constexpr (Bits::kFar) {
      first_bit |= (__shfl_sync(kAllLanes, chunk.w, 0, kGroupLanes) & 0xFFFF) << 11;
    }
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      partial |= bits[first_bit + (chunk.x >> (8 * j) & 0xFF)] << j;
    }
    partial <<= 4 * lane;
    partial |= __shfl_xor_sync(kAllLanes, partial, 1, kGroupLanes);
    partial |= __shfl_xor_sync(kAllLanes, partial, 2, kGroupLanes);
    partial &= 0x7FFF;  // there is no place 15
    // Halves of words: a slot qualifies where all its bits are in the partial key. Those of the
    // first chunk that are none are made not to.
    const uint32_t absent = ~(partial | partial << 16);
    if (lane == 0) {
      chunk.y = chunk.z = uint32_t{kTied} << 16 | kTied;
      chunk.w |= kTied;
    }
    const uint32_t words[3] = {chunk.y & absent, chunk.z & absent, chunk.w & absent};
    uint32_t zero = 0;  // bits 13 to 15: the slots in low halves; 29 to 31: those in high ones
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const uint32_t halves = ~(((words[j] & 0x7FFF7FFFu) + 0x7FFF7FFFu) | words[j]) & 0x80008000u;
      zero |= halves >> (2 - j);
    }
    if (zero != 0) {
      const uint32_t last = 31 - __clz(static_cast<int>(zero));
      place.slot = lane == 0 ? 1 : 6 * lane - 4 + (last & 15) - 13 + (last >> 4) * 3;
    }
    place.slot = max(place.slot, __shfl_xor_sync(kAllLanes, place.slot, 1, kGroupLanes));
    place.slot = max(place.slot, __shfl_xor_sync(kAllLanes, place.slot, 2, kGroupLanes));
    return place;
  }

  // The leaf's slot that the tree leads to.
  template <typename Bits>
  __device__ Place Descend(const Bits& bits) const {
    Place place = Visit(Enter(bits), bits);
    while (__any_sync(kAllLanes, !place.in_leaf())) {
      const Place next = Visit(place.in_leaf() ? place.node : place.child(), bits);
      if (!place.in_leaf()) place = next;
    }
    return place;
  }

  __device__ uint32_t TiesBehind(const Place& place) const {
    return tree.nodes[place.node].TiesBehind(place.slot);
  }
};

// Where a query is among the keys.
struct Found {
  uint32_t key;  // that of the least key that is not less
  bool found;    // whether it is the query
  // The neighbour by which a query is to be placed that is not there, and how it differs.
  uint32_t neighbour;
  StringDifference difference;
  bool placed;  // whether `key` is known without that
};

// The lower bound among keys [first, last) that are tied, by comparing. By a warp, of which groups
// that are `active` search.
template <int kChunks>
__device__ Found SearchTies(const Searcher& searcher, const StringQuery& query,
                            const QueryUnits<kChunks>& wanted, uint32_t first, uint32_t last,
                            bool active) {
  uint32_t low = first, high = active ? last : first;
  Found result = {};
  while (__any_sync(kAllLanes, low < high)) {
    const uint32_t middle = low + (high - low) / 2;
    const uint64_t* const record = RecordOf(searcher.tree.records, min(middle, last - 1));
    const StringDifference difference =
        DifferenceFrom(query, wanted, record, searcher.lane, searcher.shift);
    if (low >= high) continue;
    const bool equal = difference.None(query);
    result.found |= equal;
    if (!equal && difference.QueryIsBehind(query)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  result.key = low;
  result.placed = result.found || (low != first && low != last);
  result.neighbour = low == first ? first : last - 1;
  return result;
}

// Where the keys that start with a prefix of the query begin, or end if it is of ones, if that is
// in the leaf of `place`, where the prefix leads: the query's lower bound. By a warp, of which
// groups that are `active` ask. *beyond says that the leaf's end does not tell.
template <bool kTies, int kChunks>
__device__ uint32_t EdgeAt(const Searcher& searcher, const Place& place, const StringQuery& query,
                           const QueryUnits<kChunks>& wanted, bool ones, bool active,
                           bool* beyond) {
  const uint32_t ties = kTies && active ? searcher.TiesBehind(place) : 0;
  uint32_t edge = ones ? place.key() + ties + 1 : place.key();
  if (kTies && __any_sync(kAllLanes, ties > 0)) {
    // Some of them may have the prefix, and others not.
    const Found among =
        SearchTies(searcher, query, wanted, place.key(), place.key() + ties + 1, ties > 0);
    if (ties > 0) edge = among.key;
  }
  *beyond = active &&
            edge == (ones ? place.base + searcher.tree.nodes[place.node].entries() : place.base);
  return edge;
}

template <int kChunks, template <int> typename BitsOf, bool kTies>
__global__ void __launch_bounds__(kStringThreads, BlocksAtOnce(kChunks))
    FindPoints(StringTreeView tree, StringQueries batch) {
  const Searcher searcher(tree);
  const int lane = searcher.lane, shift = searcher.shift;
  const uint32_t stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  // All groups of a warp go on until the first one's queries end.
  auto extent = batch.ExtentOf(group);
  for (uint32_t i = group; i - shift / kGroupLanes < batch.size; i += stride) {
    const bool asked = i < batch.size;
    const StringQuery query = batch.At(extent, 0);
    extent = batch.ExtentOf(i + stride);  // of the next, which is asked of memory meanwhile
    const QueryUnits<kChunks> wanted(query, lane);
    const Place place = searcher.Descend(BitsOf<kChunks>(query, wanted, lane));
    batch.Prefetch(extent, lane);
    const uint64_t* const record = RecordOf(tree.records, place.key());
    const RecordUnits<kChunks, RecordLoad::kLeavesFirst> key(record, wanted.size, lane);
    bool found = IsQuery(query, wanted, record, key, lane, shift);
    RowId row = static_cast<RowId>(key.units[0]);  // in lane 0
    if constexpr (kTies) {
      const uint32_t ties = found ? 0 : searcher.TiesBehind(place);
      if (__any_sync(kAllLanes, ties > 0)) {
        const Found among =
            SearchTies(searcher, query, wanted, place.key(), place.key() + ties + 1, ties > 0);
        if (ties > 0 && among.found) {
          found = true;
          row = static_cast<RowId>(*RecordOf(tree.records, among.key));
        }
      }
    }
    if (lane == 0 && asked) batch.Write(i, found, row);
  }
}

__device__ inline void WritePosition(const StringTreeView& tree, const StringQueries& batch,
                                     uint32_t query, uint32_t key) {
  __stcs(static_cast<Position*>(batch.results) + query,
         tree.first_positions != nullptr ? __ldg(tree.first_positions + key) : key);
}

template <int kChunks, template <int> typename BitsOf, bool kTies>
__global__ void __launch_bounds__(kStringThreads, BlocksAtOnce(kChunks))
    FindBounds(StringTreeView tree, StringQueries batch, AgainList again) {
  const Searcher searcher(tree);
  const int lane = searcher.lane, shift = searcher.shift;
  const uint32_t behind = batch.BitsBehind();
  const uint32_t stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  auto extent = batch.ExtentOf(group);
  for (uint32_t i = group; i - shift / kGroupLanes < batch.size; i += stride) {
    const bool asked = i < batch.size;
    const StringQuery query = batch.At(extent, behind);
    extent = batch.ExtentOf(i + stride);
    const QueryUnits<kChunks> wanted(query, lane);
    const BitsOf<kChunks> bits(query, wanted, lane);
    const Place place = searcher.Descend(bits);
    batch.Prefetch(extent, lane);
    Found at = {};
    at.key = at.neighbour = place.key();
    at.difference = DifferenceFrom(query, wanted, RecordOf(tree.records, at.key), lane, shift);
    at.found = at.placed = at.difference.None(query);
    if constexpr (kTies) {
      const uint32_t ties = at.found ? 0 : searcher.TiesBehind(place);
      if (__any_sync(kAllLanes, ties > 0)) {
        const Found among =
            SearchTies(searcher, query, wanted, place.key(), place.key() + ties + 1, ties > 0);
        if (ties > 0) {
          at.key = among.key, at.found = among.found;
          at.neighbour = among.neighbour, at.placed = among.placed;
        }
        const StringDifference difference =
            DifferenceFrom(query, wanted, RecordOf(tree.records, at.neighbour), lane, shift);
        if (ties > 0) at.difference = difference;
      }
    }
    // Before or behind all keys that share the bits before the first one that differs.
    const bool ones = !at.placed && at.difference.QueryIsBehind(query);
    if (!at.placed && at.difference.bit == kSameBits) {  // before or behind the neighbour
      at.key = at.neighbour + (ones ? 1 : 0);
      at.placed = true;
    }
    bool beyond = false;
    if (__any_sync(kAllLanes, !at.placed)) {
      const PrefixBits<BitsOf<kChunks>> prefix = {bits, at.difference.bit, ones};
      const Place edge = searcher.Visit(place.node, prefix);
      const uint32_t key = EdgeAt<kTies>(searcher, edge, query, wanted, ones, !at.placed, &beyond);
      if (!at.placed) at.key = key;
    }
    if (lane != 0 || !asked) continue;
    if (beyond) {
      again.queries[atomicAdd(again.count, 1)] = {i, at.difference.bit, ones};
    } else {
      WritePosition(tree, batch, i,
                    at.key + (batch.answer == StringAnswer::kUpperBound && at.found ? 1 : 0));
    }
  }
}

// Bounds that the leaves did not tell: where the keys that share the bits before the first one that
// differs begin or end, from the root.
template <int kChunks, template <int> typename BitsOf, bool kTies>
__global__ void __launch_bounds__(kStringThreads, BlocksAtOnce(kChunks))
    FindEdges(StringTreeView tree, StringQueries batch, AgainList list) {
  const Searcher searcher(tree);
  const uint32_t size = *list.count, stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  for (uint32_t i = group; i - searcher.shift / kGroupLanes < size; i += stride) {
    const Again again = list.queries[min(i, size - 1)];
    const StringQuery query = batch.At(batch.ExtentOf(again.query), batch.BitsBehind());
    const QueryUnits<kChunks> wanted(query, searcher.lane);
    const BitsOf<kChunks> bits(query, wanted, searcher.lane);
    const Place edge = searcher.Descend(PrefixBits<BitsOf<kChunks>>{bits, again.bits, again.ones});
    bool beyond;
    const uint32_t key = EdgeAt<kTies>(searcher, edge, query, wanted, again.ones, true, &beyond);
    if (searcher.lane == 0 && i < size) WritePosition(tree, batch, again.query, key);
  }
}

absl::StatusOr<LaunchShape> ShapeFor(uint32_t queries) {
  int device = 0, processors = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const unsigned wanted = (queries + kGroupsInBlock - 1) / kGroupsInBlock;
  return LaunchShape{std::min(wanted, static_cast<unsigned>(processors * kBlocks)), kStringThreads};
}

template <int kChunks, template <int> typename BitsOf, bool kTies>
absl::Status Search(const StringTreeView& tree, const StringQueries& batch, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const LaunchShape shape, ShapeFor(batch.size));
  if (batch.answer == StringAnswer::kRow || batch.answer == StringAnswer::kFound) {
    CAIRN_RETURN_IF_LAUNCH_FAILS("FindPoints", shape, stream, FindPoints<kChunks, BitsOf, kTies>,
                                 tree, batch);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const DeviceBuffer<Again> queries,
                   DeviceBuffer<Again>::Allocate(batch.size, stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> count, DeviceBuffer<uint32_t>::Allocate(1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(count.data(), 0, count.bytes(), stream));
  const AgainList again = {queries.data(), count.data()};
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindBounds", shape, stream, FindBounds<kChunks, BitsOf, kTies>,
                               tree, batch, again);
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindEdges", shape, stream, FindEdges<kChunks, BitsOf, kTies>, tree,
                               batch, again);
  return absl::OkStatus();
}

}  // namespace

absl::Status SearchStringTree(const StringTreeView& tree, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream) {
  return SearchInParts(keys, answer, results, [&](const StringQueries& batch) {
    if (tree.longest <= kFewChunkBytes) {
      return tree.ties ? Search<kFewChunks, StagedBits, true>(tree, batch, stream)
                       : Search<kFewChunks, StagedBits, false>(tree, batch, stream);
    }
    if (tree.longest <= kMostChunkBytes) {
      return tree.ties ? Search<kMostChunks, StagedBits, true>(tree, batch, stream)
                       : Search<kMostChunks, StagedBits, false>(tree, batch, stream);
    }
    return tree.ties ? Search<kMostChunks, QueryBits, true>(tree, batch, stream)
                     : Search<kMostChunks, QueryBits, false>(tree, batch, stream);
  });
}

}  // namespace cairn::gpu
