#include <algorithm>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/strings/string_query.cuh"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_searcher.cuh"
#include "gpu/strings/string_tree.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Blocks per multiprocessor: several times as many as run at once, so that the last ones end
// together.
constexpr int kBlocks = 32;
// Blocks that run at once on a multiprocessor, which limits the registers per thread. With 8, 6 and
// 5 on an H200: 16 digits 13.3, 12.1, 11.3 G/s; lower bounds of URLs, which are longer, 4.2, 4.8,
// 4.7.
constexpr int BlocksAtOnce(int chunks) {
  return chunks == kFewChunks ? 8 : 6;
}

// A query that has to be searched again, by a prefix, from the root.
struct Again {
  uint32_t query;
  uint32_t bits;
  bool ones;
};

// The queries of a batch that have to be searched again.
struct AgainList {
  Again* queries;   // has room for all queries
  uint32_t* count;  // initially 0
};

// The position of a query among the keys.
struct Found {
  uint32_t key;  // number of the first key that is not less
  bool found;    // whether that key equals the query
  // For a query that does not exist: the adjacent key from which its position follows, and how they
  // differ.
  uint32_t neighbour;
  StringDifference difference;
  bool placed;  // whether `key` is known without the adjacent key
};

// The lower bound among tied keys [first, last), by comparing. Called by a warp; only groups that
// are `active` search.
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

// The first key that starts with a prefix of the query, or if the prefix is of ones, the end of
// these keys: the query's lower bound. `place` is where the prefix leads. Called by a warp; only
// groups that are `active` search. *beyond is set if the result is at the leaf's end, so that the
// true bound may be outside the leaf.
template <bool kTies, int kChunks>
__device__ uint32_t EdgeAt(const Searcher& searcher, const Place& place, const StringQuery& query,
                           const QueryUnits<kChunks>& wanted, bool ones, bool active,
                           bool* beyond) {
  const uint32_t ties = kTies && active ? searcher.TiesBehind(place) : 0;
  uint32_t edge = ones ? place.key() + ties + 1 : place.key();
  if (kTies && __any_sync(kAllLanes, ties > 0)) {
    // Only some of them may have the prefix.
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
  // All groups of a warp continue until the first group's queries end.
  auto extent = batch.ExtentOf(group);
  for (uint32_t i = group; i - shift / kGroupLanes < batch.size; i += stride) {
    const bool asked = i < batch.size;
    const StringQuery query = batch.At(extent, 0);
    extent = batch.ExtentOf(i + stride);  // of the next query, loaded in advance
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

// Writes the position of a query: before key `key`, which equals it if `found`.
__device__ inline void WritePosition(const StringTreeView& tree, const StringQueries& batch,
                                     uint32_t query, uint32_t key, bool found) {
  const auto write = [&](Position* to, uint32_t distinct) {
    __stcs(to + query,
           tree.first_positions != nullptr ? __ldg(tree.first_positions + distinct) : distinct);
  };
  const bool behind = found && batch.answer == StringAnswer::kUpperBound;
  write(static_cast<Position*>(batch.results), key + (behind ? 1 : 0));
  if (batch.ends != nullptr) write(batch.ends, key + (found ? 1 : 0));
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
    // The query is before or after all keys that share the bits before the first difference.
    const bool ones = !at.placed && at.difference.QueryIsBehind(query);
    if (!at.placed && at.difference.bit == kSameBits) {  // before or after the adjacent key
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
      WritePosition(tree, batch, i, at.key, at.found);
    }
  }
}

// Finds the bounds that the leaves could not determine. Descends again from the root, to the begin
// or end of the keys that share the query's bits before the first difference.
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
    if (searcher.lane == 0 && i < size) WritePosition(tree, batch, again.query, key, false);
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
                              void* results, Position* ends, cudaStream_t stream) {
  return SearchInParts(keys, answer, results, ends, [&](const StringQueries& batch) {
    if (tree.longest <= kFewChunkBytes) {
      return tree.ties ? Search<kFewChunks, StagedBits, true>(tree, batch, stream)
                       : Search<kFewChunks, StagedBits, false>(tree, batch, stream);
    }
    if (tree.longest <= kMaxChunkBytes) {
      return tree.ties ? Search<kMaxChunks, StagedBits, true>(tree, batch, stream)
                       : Search<kMaxChunks, StagedBits, false>(tree, batch, stream);
    }
    return tree.ties ? Search<kMaxChunks, QueryBits, true>(tree, batch, stream)
                     : Search<kMaxChunks, QueryBits, false>(tree, batch, stream);
  });
}

}  // namespace cairn::gpu
