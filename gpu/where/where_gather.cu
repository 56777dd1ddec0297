// kGather: tests the rows of one set's entries for the rest of the predicate.
#include <algorithm>

#include "gpu/runtime/launch.h"
#include "gpu/where/where_search.h"
#include "gpu/where/where_test.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kGatherThreads = 256;
constexpr int kGatheredRows = 4;  // per thread at once

// The row of entry `i` of a set's concatenated ranges.
__device__ inline RowId RowOfEntry(const WhereView& where, uint32_t set, uint32_t i) {
  const WhereSetView& view = where.sets[set];
  Position position;
  if (view.ranges == 1) {
    position = where.states[set].begin + i;
  } else {
    const uint32_t range = RangeAt(where.before + view.first_range, view.ranges, i);
    position =
        where.begins[view.first_range + range] + (i - where.before[view.first_range + range]);
  }
  return __ldcs(view.column.rows + position);
}

__global__ void __launch_bounds__(kGatherThreads)
    GatherRows(const __grid_constant__ WhereView where, uint32_t driver, unsigned long long* count,
               uint32_t* bitmap) {
  constexpr uint32_t kStep = kGatherThreads * kGatheredRows;
  const uint32_t entries = where.states[driver].rows;
  uint32_t found = 0;
  for (uint64_t from = uint64_t{blockIdx.x} * kStep + threadIdx.x; from - threadIdx.x < entries;
       from += uint64_t{gridDim.x} * kStep) {
    RowId rows[kGatheredRows];
    uint32_t alive = 0;
#pragma unroll
    for (int i = 0; i < kGatheredRows; ++i) {
      const uint64_t entry = from + i * kGatherThreads;
      rows[i] = 0;
      if (entry >= entries) continue;
      rows[i] = RowOfEntry(where, driver, static_cast<uint32_t>(entry));
      alive |= uint32_t{1} << i;
    }
    if (where.op_count > 0) alive = RowsThatPass<kGatheredRows>(where, rows, alive);
    found += __popc(alive);
    if (bitmap == nullptr) continue;
#pragma unroll
    for (int i = 0; i < kGatheredRows; ++i) {
      if (alive >> i & 1) atomicOr(bitmap + rows[i] / 32, uint32_t{1} << rows[i] % 32);
    }
  }
  if (count != nullptr) AddBlockCount(found, count);
}

// Adds the number of a set's entries; each entry is a row.
__global__ void CountEntries(const WhereSetState* state, unsigned long long* count) {
  *count += state->rows;
}

}  // namespace

absl::Status GatherWhere(const WhereView& where, uint32_t driver, uint64_t most,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream) {
  if (count != nullptr && where.op_count == 0) {
    CAIRN_RETURN_IF_LAUNCH_FAILS("CountEntries", {1, 1}, stream, CountEntries,
                                 where.states + driver, count);
    return absl::OkStatus();
  }
  constexpr uint64_t kStep = kGatherThreads * kGatheredRows, kMaxBlocks = 1 << 16;
  const uint64_t blocks = std::clamp<uint64_t>((most + kStep - 1) / kStep, 1, kMaxBlocks);
  CAIRN_RETURN_IF_LAUNCH_FAILS("GatherRows", {static_cast<unsigned>(blocks), kGatherThreads},
                               stream, GatherRows, where, driver, count, bitmap);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
