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
constexpr int kBlocksAtOnce = 8;  // on a multiprocessor

// The bits of a query before `bits`, then zeros or ones: the least, or the greatest, key that
// starts with them.
struct Prefix {
  uint32_t bits = UINT32_MAX;
  bool ones = false;
};

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
  const StringNode* node;
  uint32_t base, meta;  // the node's words 1 and 2
  uint32_t slot;

  __device__ bool in_leaf() const { return (meta & StringNode::kLeaf) != 0; }
  __device__ uint32_t child() const {
    return base + __popc((meta & StringNode::kStarts) << (31 - slot)) - 1;
  }
  __device__ uint32_t key() const { return base + slot; }
};

// A warp's part in a search: which lane of its group a thread is, and where the group's lanes
// begin.
struct Searcher {
  const StringTreeView& tree;
  const int lane, shift;
  uint32_t root_bits[6];  // of places lane, lane + 4, …

  __device__ explicit Searcher(const StringTreeView& view)
      : tree(view),
        lane(threadIdx.x % kGroupLanes),
        shift(threadIdx.x % 32 / kGroupLanes * kGroupLanes) {
#pragma unroll
    for (int j = 0; j < 6; ++j) root_bits[j] = __ldg(view.root_bits + lane + kGroupLanes * j);
  }

  // All of what follows by a warp; the same in all lanes of a group.

  __device__ static uint32_t Bit(const StringQuery& query, const Prefix& prefix, uint32_t bit) {
    return bit < prefix.bits ? query.Bit(bit) : prefix.ones ? 1 : 0;
  }

  // Where the root leads. Places that it does not use have no bit, which must not be one.
  __device__ const StringNode* Enter(const StringQuery& query, const Prefix& prefix) const {
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 6; ++j) {
      const uint32_t bit = root_bits[j];
      const uint32_t value = bit == StringTree::kNoRootBit ? 0 : Bit(query, prefix, bit);
      partial |= value << (kGroupLanes * j);
    }
    partial <<= lane;
    partial |= __shfl_xor_sync(kAllLanes, partial, 1, kGroupLanes);
    partial |= __shfl_xor_sync(kAllLanes, partial, 2, kGroupLanes);
    return tree.nodes + __ldg(tree.root + partial);
  }

  // The last slot of the node whose sparse partial key is in the query's.
  __device__ Place Visit(const StringNode* node, const StringQuery& query,
                         const Prefix& prefix) const {
    uint4 chunk = __ldg(reinterpret_cast<const uint4*>(node) + lane);
    Place place = {node, __shfl_sync(kAllLanes, chunk.y, 0, kGroupLanes),
                   __shfl_sync(kAllLanes, chunk.z, 0, kGroupLanes), 0};
    const uint32_t high = __shfl_sync(kAllLanes, chunk.w, 0, kGroupLanes) & 0xFFFF;
    const uint32_t first_bit = (place.meta >> 20 & 0x7FF) | high << 11;
    uint32_t partial = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      partial |= Bit(query, prefix, first_bit + (chunk.x >> (8 * j) & 0xFF)) << j;
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
  __device__ Place Descend(const StringQuery& query, const Prefix& prefix) const {
    Place place = Visit(Enter(query, prefix), query, prefix);
    while (__any_sync(kAllLanes, !place.in_leaf())) {
      const Place next =
          Visit(place.in_leaf() ? place.node : tree.nodes + place.child(), query, prefix);
      if (!place.in_leaf()) place = next;
    }
    return place;
  }

  __device__ uint32_t TiesBehind(const Place& place) const {
    return tree.ties ? place.node->TiesBehind(place.slot) : 0;
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
__device__ Found SearchTies(const Searcher& searcher, const StringQuery& query, uint32_t first,
                            uint32_t last, bool active) {
  uint32_t low = first, high = active ? last : first;
  Found result = {};
  while (__any_sync(kAllLanes, low < high)) {
    const uint32_t middle = low + (high - low) / 2;
    const uint64_t* const record = RecordOf(searcher.tree.records, min(middle, last - 1));
    const StringDifference difference =
        DifferenceFrom<kChunks>(query, record, searcher.lane, searcher.shift);
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
template <int kChunks>
__device__ uint32_t EdgeAt(const Searcher& searcher, const Place& place, const StringQuery& query,
                           bool ones, bool active, bool* beyond) {
  const uint32_t ties = active ? searcher.TiesBehind(place) : 0;
  uint32_t edge = ones ? place.key() + ties + 1 : place.key();
  if (searcher.tree.ties && __any_sync(kAllLanes, ties > 0)) {
    // Some of them may have the prefix, and others not.
    const Found among =
        SearchTies<kChunks>(searcher, query, place.key(), place.key() + ties + 1, ties > 0);
    if (ties > 0) edge = among.key;
  }
  *beyond = active && edge == (ones ? place.base + place.node->entries() : place.base);
  return edge;
}

template <int kChunks>
__global__ void __launch_bounds__(kStringThreads)
    FindPoints(StringTreeView tree, StringQueries batch) {
  const Searcher searcher(tree);
  const int lane = searcher.lane, shift = searcher.shift;
  const uint32_t stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  // All groups of a warp go on until the first one's queries end.
  for (uint32_t i = group; i - shift / kGroupLanes < batch.size; i += stride) {
    const bool asked = i < batch.size;
    const StringQuery query = batch[asked ? i : batch.size - 1];
    const Place place = searcher.Descend(query, {});
    const uint64_t* const record = RecordOf(tree.records, place.key());
    const QueryUnits<kChunks> wanted(query, lane);
    const RecordUnits<kChunks> key(record, wanted.size, lane);
    bool found = IsQuery(query, wanted, record, key, lane, shift);
    RowId row = static_cast<RowId>(key.units[0]);  // in lane 0
    if (tree.ties) {
      const uint32_t ties = found ? 0 : searcher.TiesBehind(place);
      if (__any_sync(kAllLanes, ties > 0)) {
        const Found among =
            SearchTies<kChunks>(searcher, query, place.key(), place.key() + ties + 1, ties > 0);
        if (ties > 0 && among.found) {
          found = true;
          row = static_cast<RowId>(LoadRecordUnit(RecordOf(tree.records, among.key)));
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

template <int kChunks>
__global__ void __launch_bounds__(kStringThreads)
    FindBounds(StringTreeView tree, StringQueries batch, AgainList again) {
  const Searcher searcher(tree);
  const int lane = searcher.lane, shift = searcher.shift;
  const uint32_t stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  for (uint32_t i = group; i - shift / kGroupLanes < batch.size; i += stride) {
    const bool asked = i < batch.size;
    const StringQuery query = batch[asked ? i : batch.size - 1];
    const Place place = searcher.Descend(query, {});
    Found at = {};
    at.key = at.neighbour = place.key();
    at.difference = DifferenceFrom<kChunks>(query, RecordOf(tree.records, at.key), lane, shift);
    at.found = at.placed = at.difference.None(query);
    if (tree.ties) {
      const uint32_t ties = at.found ? 0 : searcher.TiesBehind(place);
      if (__any_sync(kAllLanes, ties > 0)) {
        const Found among =
            SearchTies<kChunks>(searcher, query, place.key(), place.key() + ties + 1, ties > 0);
        if (ties > 0) {
          at.key = among.key, at.found = among.found;
          at.neighbour = among.neighbour, at.placed = among.placed;
        }
        const StringDifference difference =
            DifferenceFrom<kChunks>(query, RecordOf(tree.records, at.neighbour), lane, shift);
        if (ties > 0) at.difference = difference;
      }
    }
    // Before or behind all keys that share the bits before the first one that differs.
    Prefix prefix;
    if (!at.placed) {
      prefix = {at.difference.bit, at.difference.QueryIsBehind(query)};
      if (prefix.bits == kSameBits) {  // before or behind the neighbour
        at.key = at.neighbour + (prefix.ones ? 1 : 0);
        at.placed = true;
      }
    }
    bool beyond = false;
    if (__any_sync(kAllLanes, !at.placed)) {
      const Place edge = searcher.Visit(place.node, query, prefix);
      const uint32_t key = EdgeAt<kChunks>(searcher, edge, query, prefix.ones, !at.placed, &beyond);
      if (!at.placed) at.key = key;
    }
    if (lane != 0 || !asked) continue;
    if (beyond) {
      again.queries[atomicAdd(again.count, 1)] = {i, prefix.bits, prefix.ones};
    } else {
      WritePosition(tree, batch, i,
                    at.key + (batch.answer == StringAnswer::kUpperBound && at.found ? 1 : 0));
    }
  }
}

// Bounds that the leaves did not tell: where the keys that share the bits before the first one that
// differs begin or end, from the root.
template <int kChunks>
__global__ void __launch_bounds__(kStringThreads)
    FindEdges(StringTreeView tree, StringQueries batch, AgainList list) {
  const Searcher searcher(tree);
  const uint32_t size = *list.count, stride = gridDim.x * kGroupsInBlock;
  const uint32_t group = blockIdx.x * kGroupsInBlock + threadIdx.x / kGroupLanes;
  for (uint32_t i = group; i - searcher.shift / kGroupLanes < size; i += stride) {
    const Again again = list.queries[min(i, size - 1)];
    const Prefix prefix = {again.bits, again.ones};
    const StringQuery query = batch[again.query];
    const Place edge = searcher.Descend(query, prefix);
    bool beyond;
    const uint32_t key = EdgeAt<kChunks>(searcher, edge, query, prefix.ones, true, &beyond);
    if (searcher.lane == 0 && i < size) WritePosition(tree, batch, again.query, key);
  }
}

absl::StatusOr<LaunchShape> ShapeFor(uint32_t queries) {
  int device = 0, processors = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const unsigned wanted = (queries + kGroupsInBlock - 1) / kGroupsInBlock;
  return LaunchShape{std::min(wanted, static_cast<unsigned>(processors * kBlocksAtOnce)),
                     kStringThreads};
}

template <int kChunks>
absl::Status Search(const StringTreeView& tree, const StringQueries& batch, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const LaunchShape shape, ShapeFor(batch.size));
  if (batch.answer == StringAnswer::kRow || batch.answer == StringAnswer::kFound) {
    CAIRN_RETURN_IF_LAUNCH_FAILS("FindPoints", shape, stream, FindPoints<kChunks>, tree, batch);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const DeviceBuffer<Again> queries,
                   DeviceBuffer<Again>::Allocate(batch.size, stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> count, DeviceBuffer<uint32_t>::Allocate(1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(count.data(), 0, count.bytes(), stream));
  const AgainList again = {queries.data(), count.data()};
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindBounds", shape, stream, FindBounds<kChunks>, tree, batch,
                               again);
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindEdges", shape, stream, FindEdges<kChunks>, tree, batch, again);
  return absl::OkStatus();
}

}  // namespace

absl::Status SearchStringTree(const StringTreeView& tree, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream) {
  return SearchInParts(keys, answer, results, [&](const StringQueries& batch) {
    return tree.longest <= kFewChunkBytes ? Search<kFewChunks>(tree, batch, stream)
                                          : Search<kMostChunks>(tree, batch, stream);
  });
}

}  // namespace cairn::gpu
