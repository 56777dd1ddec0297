#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "gpu/where/where_view.h"

namespace cairn::gpu {

// The last of a set's ranges that begins at or before a position, counted from the set's first
// range; `ranges` if there is none.
__device__ inline uint32_t RangeAt(const Position* begins, uint32_t ranges, Position position) {
  uint32_t low = 0, high = ranges;  // begins[low - 1] <= position < begins[high]
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (__ldg(begins + middle) <= position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? ranges : low - 1;
}

// Whether a position is in a set.
__device__ inline bool HasPosition(const WhereView& where, uint32_t set, Position position) {
  const WhereSetView& view = where.sets[set];
  if (view.ranges == 1) {
    const Position begin = __ldg(&where.states[set].begin), end = __ldg(&where.states[set].end);
    return position - begin < end - begin;
  }
  const uint32_t range = RangeAt(where.begins + view.first_range, view.ranges, position);
  return range < view.ranges && position < __ldg(where.ends + view.first_range + range);
}

// The code of a row.
__device__ inline uint32_t CodeOf(const uint4* codes, RowId row) {
  const uint4 low = __ldg(codes + row / 32 * 2), high = __ldg(codes + row / 32 * 2 + 1);
  const uint32_t words[kCodeBits] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t code = 0;
#pragma unroll
  for (uint32_t bit = 0; bit < kCodeBits; ++bit) code |= (words[bit] >> row % 32 & 1) << bit;
  return code;
}

// The rows of a thread that satisfy a program: bit i is for rows[i]. Only tests rows in `alive`,
// and does not read others.
template <int kRows>
__device__ inline uint32_t RowsThatPass(const WhereView& where, const RowId (&rows)[kRows],
                                        uint32_t alive) {
  constexpr uint32_t kAll = (uint32_t{1} << kRows) - 1;
  static_assert(kRows * (kMaxStack + 1) <= 32);
  uint32_t value = kAll, stack = 0;
  // Those of `asked` that are in a set. Loads are independent, so they are in flight together.
  const auto in_set = [&](uint32_t set, uint32_t asked) {
    const WhereColumnView& column = where.sets[set].column;
    uint32_t codes[kRows], in = 0;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      codes[i] = asked >> i & 1 ? CodeOf(column.codes, rows[i]) : 0;
    }
    const WhereSetState& state = where.states[set];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if ((asked >> i & 1) == 0) continue;
      const uint32_t word = codes[i] / 32, bit = codes[i] % 32;
      if ((__ldg(state.possible + word) >> bit & 1) == 0) continue;
      if ((__ldg(state.sure + word) >> bit & 1) != 0 ||
          HasPosition(where, set, __ldg(column.positions + rows[i]))) {
        in |= uint32_t{1} << i;
      }
    }
    return in;
  };
  for (uint32_t i = 0; i < where.op_count && alive != 0; ++i) {
    const WhereOp op = where.ops[i];
    switch (op.step) {
      case WhereStep::kLoad:
        value = in_set(op.set, alive);
        break;
      case WhereStep::kAnd:
        value &= in_set(op.set, alive & value);
        break;
      case WhereStep::kOr:
        value |= in_set(op.set, alive & ~value);
        break;
      case WhereStep::kPush:
        stack = stack << kRows | (value & kAll);
        break;
      case WhereStep::kPopAnd:
        value &= stack & kAll;
        stack >>= kRows;
        break;
      case WhereStep::kPopOr:
        value |= stack & kAll;
        stack >>= kRows;
        break;
      case WhereStep::kRequire:
        alive &= value;
        break;
    }
  }
  return alive & value;
}

// Adds the sum of all threads' counts to *count, once per block. Must be called by all threads of
// the block.
__device__ inline void AddBlockCount(uint32_t mine, unsigned long long* count) {
  __shared__ uint32_t block_count;
  if (threadIdx.x == 0) block_count = 0;
  __syncthreads();
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0 && mine != 0) atomicAdd(&block_count, mine);
  __syncthreads();
  if (threadIdx.x == 0 && block_count != 0)
    atomicAdd(count, static_cast<unsigned long long>(block_count));
}

}  // namespace cairn::gpu
