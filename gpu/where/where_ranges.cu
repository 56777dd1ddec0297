#include "gpu/where/where_ranges.h"

#include <cub/block/block_scan.cuh>

#include "gpu/runtime/launch.h"
#include "gpu/where/where_test.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Key ranges, as many as fit the parameters of a kernel. This way they reach the device in stream
// order, also in a graph, without host memory that must stay valid.
struct RangeChunk {
  static constexpr uint32_t kRanges = 192;
  // `first` and `last` are positions, and `last` is past the end of the range.
  static constexpr uint8_t kPositions = 0xFF;

  uint64_t first[kRanges], last[kRanges];
  uint8_t column[kRanges];
};
static_assert(DeviceIndexGroup::kMaxColumns <= RangeChunk::kPositions);
static_assert(sizeof(RangeChunk) + 64 <= 4096);
static_assert(sizeof(WhereView) + 64 <= 4096);

// The number of keys less than `key`, found by a whole warp: each step compares 32 keys, which
// leaves 33 intervals.
template <typename Key>
__device__ uint32_t CountBelow(const Key* keys, uint32_t entries, uint64_t key) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t low = 0, left = entries;
  while (left > 32) {
    const auto probe = [&](uint32_t i) {
      return low + static_cast<uint32_t>(uint64_t{i + 1} * left / 33);
    };
    const int below = __popc(__ballot_sync(0xffffffffu, __ldg(keys + probe(lane)) < key));
    const uint32_t end = below == 32 ? low + left : probe(below);
    if (below > 0) low = probe(below - 1) + 1;
    left = end - low;
  }
  return low + __popc(__ballot_sync(0xffffffffu, lane < left && __ldg(keys + low + lane) < key));
}

__device__ uint32_t CountBelow(const WhereKeysView& column, uint64_t key) {
  return column.wide
             ? CountBelow(static_cast<const unsigned long long*>(column.keys), column.entries, key)
             : CountBelow(static_cast<const uint32_t*>(column.keys), column.entries, key);
}

// Each warp finds one end of a range.
__global__ void FindEnds(const __grid_constant__ RangeChunk chunk, uint32_t ranges,
                         const WhereKeysView* columns, Position* begins, Position* ends) {
  const uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, range = warp / 2;
  if (range >= ranges) return;
  const bool is_end = warp % 2 == 1;
  const uint64_t key = is_end ? chunk.last[range] : chunk.first[range];
  uint32_t position;
  if (chunk.column[range] == RangeChunk::kPositions) {
    position = static_cast<uint32_t>(key);
  } else {
    const WhereKeysView column = columns[chunk.column[range]];
    position = !is_end             ? CountBelow(column, key)
               : key == UINT64_MAX ? column.entries
                                   : CountBelow(column, key + 1);
  }
  if (threadIdx.x % 32 == 0) (is_end ? ends : begins)[range] = position;
}

// Sets the codes of the only range: those that it contains partly, and those that it contains
// completely.
__device__ void SetCodes(uint32_t rows, uint32_t bucket, WhereSetState* state) {
  const Position begin = state->begin, end = state->end;
  int possible_first = 1, possible_last = 0, sure_first = 1, sure_last = 0;
  if (begin < end) {
    possible_first = begin / bucket;
    possible_last = (end - 1) / bucket;
    const uint32_t first = begin / bucket + (begin % bucket != 0);
    const uint32_t behind = end == rows ? (rows - 1) / bucket + 1 : end / bucket;
    if (first < behind) {
      sure_first = first;
      sure_last = behind - 1;
    }
  }
  state->possible_first = possible_first;
  state->possible_last = possible_last;
  state->sure_first = sure_first;
  state->sure_last = sure_last;
}

constexpr int kPrepareThreads = kCodes;

// One block per set: computes the number of positions in its ranges, as running sums, and the
// properties of its codes.
__global__ void __launch_bounds__(kPrepareThreads)
    PrepareSets(const __grid_constant__ WhereView where, uint32_t* before, WhereSetState* states) {
  using Scan = cub::BlockScan<uint32_t, kPrepareThreads>;
  __shared__ typename Scan::TempStorage scratch;
  const WhereSetView& set = where.sets[blockIdx.x];
  const Position* const begins = where.begins + set.first_range;
  const Position* const ends = where.ends + set.first_range;
  before += set.first_range;
  uint32_t counted = 0;
  for (uint32_t i = threadIdx.x; i - threadIdx.x < set.ranges; i += kPrepareThreads) {
    const uint32_t positions = i < set.ranges ? ends[i] - begins[i] : 0;
    uint32_t sum, all;
    Scan(scratch).ExclusiveSum(positions, sum, all);
    if (i < set.ranges) before[i] = counted + sum;
    counted += all;
    __syncthreads();
  }
  // The number of positions in the set that are less than the given one.
  const auto count_below = [&](Position position) -> uint32_t {
    const uint32_t range = RangeAt(begins, set.ranges, position);
    return range == set.ranges
               ? 0
               : before[range] + min(position - begins[range], ends[range] - begins[range]);
  };
  WhereSetState* const state = states + blockIdx.x;
  const uint64_t from = uint64_t{threadIdx.x} * where.bucket;
  const uint64_t to = min(from + where.bucket, uint64_t{where.rows});
  uint32_t in = 0;
  if (from < where.rows) {
    in = count_below(static_cast<Position>(to)) - count_below(static_cast<Position>(from));
  }
  const uint32_t possible = __ballot_sync(0xffffffffu, in > 0);
  const uint32_t sure = __ballot_sync(0xffffffffu, in > 0 && in == to - from);
  if (threadIdx.x % 32 == 0) {
    state->possible[threadIdx.x / 32] = possible;
    state->sure[threadIdx.x / 32] = sure;
  }
  if (threadIdx.x == 0) {
    state->begin = set.ranges == 1 ? begins[0] : 0;
    state->end = set.ranges == 1 ? ends[0] : 0;
    state->rows = counted;
    SetCodes(where.rows, where.bucket, state);
  }
}

}  // namespace

absl::Status FindWhereRanges(absl::Span<const WhereSet> sets, const WhereKeysView* columns,
                             absl::Span<const uint32_t> entries, WhereView* where,
                             WhereRanges* ranges, cudaStream_t stream) {
  size_t count = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    where->sets[i].first_range = static_cast<uint32_t>(count);
    where->sets[i].ranges = static_cast<uint32_t>(sets[i].ranges.size() + sets[i].null);
    count += where->sets[i].ranges;
  }
  if (count > UINT32_MAX) {
    return absl::InvalidArgumentError("predicate: more than 2^32 key ranges");
  }
  RETURN_IF_ERROR(Resize(&ranges->begins, count, stream));
  RETURN_IF_ERROR(Resize(&ranges->ends, count, stream));
  RETURN_IF_ERROR(Resize(&ranges->before, count, stream));
  RETURN_IF_ERROR(Resize(&ranges->states, sets.size(), stream));
  where->set_count = static_cast<uint32_t>(sets.size());
  where->states = ranges->states.data();
  where->begins = ranges->begins.data();
  where->ends = ranges->ends.data();
  where->before = ranges->before.data();

  RangeChunk chunk = {};
  uint32_t held = 0;
  size_t done = 0;
  const auto flush = [&]() -> absl::Status {
    if (held == 0) return absl::OkStatus();
    CAIRN_RETURN_IF_LAUNCH_FAILS("FindEnds", {(2 * held * 32 + 255) / 256, 256}, stream, FindEnds,
                                 chunk, held, columns, ranges->begins.data() + done,
                                 ranges->ends.data() + done);
    done += held;
    held = 0;
    return absl::OkStatus();
  };
  const auto add = [&](uint64_t first, uint64_t last, uint8_t column) -> absl::Status {
    chunk.first[held] = first;
    chunk.last[held] = last;
    chunk.column[held] = column;
    return ++held == RangeChunk::kRanges ? flush() : absl::OkStatus();
  };
  for (const WhereSet& set : sets) {
    for (const DeviceKeyRange& range : set.ranges) {
      RETURN_IF_ERROR(add(range.first, range.last, static_cast<uint8_t>(set.column)));
    }
    if (set.null) RETURN_IF_ERROR(add(entries[set.column], where->rows, RangeChunk::kPositions));
  }
  RETURN_IF_ERROR(flush());
  CAIRN_RETURN_IF_LAUNCH_FAILS("PrepareSets", {where->set_count, kPrepareThreads}, stream,
                               PrepareSets, *where, ranges->before.data(), ranges->states.data());
  return absl::OkStatus();
}

}  // namespace cairn::gpu
