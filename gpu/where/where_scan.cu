// kScan: a byte a row and set, in the order of rows. Sixteen rows are looked at together, four in a
// word: bit 7 of each byte says whether the row is surely in the set, bit 6 whether it may be, so
// that AND and OR of words are those of sets. What may be and is not sure is looked up row by row.
#include <algorithm>
#include <iterator>

#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "gpu/where/where_search.h"
#include "gpu/where/where_test.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kScanThreads = 256;
constexpr uint32_t kGroupRows = 16;                             // of a load
constexpr int kGroups = kTileRows / kGroupRows / kScanThreads;  // of a thread
static_assert(kGroups == 2);

constexpr uint32_t kSure = 0x80808080u, kPossible = 0x40404040u;

// A set as a block keeps it in shared memory.
struct ScannedSet {
  uint32_t single;  // whether it is one range
  // The codes of WhereSetState, four times each.
  uint32_t possible_first, possible_last, sure_first, sure_last;
  uint32_t classes[16];
};

__device__ inline uint32_t FourTimes(uint8_t code) {
  return code * 0x01010101u;
}

// Bit 7 of each byte: whether the byte of `a` is at least that of `b`. Other bits mean nothing.
__device__ inline uint32_t AtLeast(uint32_t a, uint32_t b) {
  const uint32_t low = (a | kSure) - (b & ~kSure);  // bit 7: of the lower seven bits
  return (a & ~b) | (~(a ^ b) & low);
}

__device__ inline uint32_t Classify(const ScannedSet& set, uint32_t codes) {
  if (set.single) {
    const uint32_t possible =
        AtLeast(codes, set.possible_first) & AtLeast(set.possible_last, codes) & kSure;
    const uint32_t sure = AtLeast(codes, set.sure_first) & AtLeast(set.sure_last, codes) & kSure;
    return possible >> 1 | sure;
  }
  // Sixteen words for all codes, so that a warp's lanes read no two of one bank.
  uint32_t word = 0;
#pragma unroll
  for (int byte = 0; byte < 4; ++byte) {
    const uint32_t code = codes >> 8 * byte & 0xFF;
    word |= (set.classes[code >> 4] >> 2 * (code & 15) & 3) << (8 * byte + 6);
  }
  return word;
}

__device__ inline uint4 Classify(const ScannedSet& set, uint4 codes) {
  return make_uint4(Classify(set, codes.x), Classify(set, codes.y), Classify(set, codes.z),
                    Classify(set, codes.w));
}

__device__ inline uint4 Both(uint4 a, uint4 b) {
  return make_uint4(a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w);
}
__device__ inline uint4 Either(uint4 a, uint4 b) {
  return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w);
}

// Bits 7 of 16 bytes, the first byte's lowest.
__device__ inline uint32_t HighBits(uint4 words) {
  const auto four = [](uint32_t word) { return (word >> 7 & 0x01010101u) * 0x10204080u >> 28; };
  return four(words.x) | four(words.y) << 4 | four(words.z) << 8 | four(words.w) << 12;
}

__device__ inline uint4 Doubled(uint4 words) {
  return make_uint4(words.x << 1, words.y << 1, words.z << 1, words.w << 1);
}

// A block a tile. kFlat: the program is kLoad of one set, then kAnd or kOr of others, so many in
// all, whose codes are loaded together; 0 for any program.
template <int kFlat>
__global__ void __launch_bounds__(kScanThreads)
    ScanTile(const __grid_constant__ WhereView where, unsigned long long* count, uint16_t* bitmap,
             uint64_t* tile_counts) {
  extern __shared__ uint4 stack[];  // [depth][kGroups][kScanThreads]
  __shared__ ScannedSet sets[kFlat > 0 ? kFlat : kMostSets];
  const uint32_t first = blockIdx.x * kTileRows + threadIdx.x * kGroupRows;
  const auto load = [&](uint32_t set, int group) {
    const uint8_t* const codes =
        where.sets[set].column.codes + first + group * (kScanThreads * kGroupRows);
    return __ldg(reinterpret_cast<const uint4*>(codes));
  };
  uint4 loaded[kFlat > 0 ? kFlat : 1][kGroups];
  if constexpr (kFlat > 0) {
#pragma unroll
    for (int i = 0; i < kFlat; ++i) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        loaded[i][group] = load(where.ops[i].set, group);
    }
  }
  for (uint32_t i = threadIdx.x; i < where.set_count * 32; i += kScanThreads) {
    const WhereSetState& state = where.states[i / 32];
    ScannedSet* const set = &sets[i / 32];
    const uint32_t part = i % 32;
    if (part < 16) set->classes[part] = state.classes[part];
    if (part == 16) {
      set->single = where.sets[i / 32].ranges == 1;
      set->possible_first = FourTimes(state.possible_first);
      set->possible_last = FourTimes(state.possible_last);
      set->sure_first = FourTimes(state.sure_first);
      set->sure_last = FourTimes(state.sure_last);
    }
  }
  __syncthreads();

  uint4 value[kGroups];
  if constexpr (kFlat > 0) {
#pragma unroll
    for (int i = 0; i < kFlat; ++i) {
      const WhereOp op = where.ops[i];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const uint4 in_set = Classify(sets[op.set], loaded[i][group]);
        value[group] = i == 0                       ? in_set
                       : op.step == WhereStep::kAnd ? Both(value[group], in_set)
                                                    : Either(value[group], in_set);
      }
    }
  } else {
    uint32_t depth = 0;
    const auto on_stack = [&](uint32_t level, int group) -> uint4& {
      return stack[(level * kGroups + group) * kScanThreads + threadIdx.x];
    };
    for (uint32_t i = 0; i < where.op_count; ++i) {
      const WhereOp op = where.ops[i];
      if (op.step == WhereStep::kPopAnd || op.step == WhereStep::kPopOr) --depth;
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        uint4& of = value[group];
        switch (op.step) {
          case WhereStep::kLoad:
            of = Classify(sets[op.set], load(op.set, group));
            break;
          case WhereStep::kAnd:
            of = Both(of, Classify(sets[op.set], load(op.set, group)));
            break;
          case WhereStep::kOr:
            of = Either(of, Classify(sets[op.set], load(op.set, group)));
            break;
          case WhereStep::kPush:
            on_stack(depth, group) = of;
            break;
          case WhereStep::kPopAnd:
            of = Both(of, on_stack(depth, group));
            break;
          case WhereStep::kPopOr:
            of = Either(of, on_stack(depth, group));
            break;
          case WhereStep::kRequire:
            break;
        }
      }
      if (op.step == WhereStep::kPush) ++depth;
    }
  }

  uint32_t found = 0;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const uint32_t row = first + group * (kScanThreads * kGroupRows);
    uint32_t rows = HighBits(value[group]);
    uint32_t open = HighBits(Doubled(value[group])) & ~rows;
    if (row >= where.rows || where.rows - row < kGroupRows) {
      const uint32_t there = row < where.rows ? (uint32_t{1} << (where.rows - row)) - 1 : 0;
      rows &= there;
      open &= there;
    }
    for (; open != 0; open &= open - 1) {
      const int i = __ffs(static_cast<int>(open)) - 1;
      const RowId one[1] = {row + i};
      rows |= RowsThatPass<1>(where, one, 1) << i;
    }
    found += __popc(rows);
    if (bitmap != nullptr) bitmap[row / kGroupRows] = static_cast<uint16_t>(rows);
  }
  if (count != nullptr) {
    AddBlockCount(found, count);
  } else {
    // The sum of a block alone.
    __shared__ unsigned long long tile_count;
    if (threadIdx.x == 0) tile_count = 0;
    __syncthreads();
    AddBlockCount(found, &tile_count);
    if (threadIdx.x == 0) tile_counts[blockIdx.x] = tile_count;
  }
}

SharedMemoryOfKernel scan_memory;

using ScanKernel = void (*)(WhereView, unsigned long long*, uint16_t*, uint64_t*);

ScanKernel KernelFor(const WhereView& where) {
  constexpr ScanKernel kFlat[] = {ScanTile<0>, ScanTile<1>, ScanTile<2>, ScanTile<3>, ScanTile<4>};
  for (uint32_t i = 0; i < where.op_count; ++i) {
    const WhereStep step = where.ops[i].step;
    if (step != WhereStep::kLoad && step != WhereStep::kAnd && step != WhereStep::kOr) {
      return kFlat[0];
    }
  }
  return kFlat[where.op_count < std::size(kFlat) ? where.op_count : 0];
}

}  // namespace

void SetProgram(const WhereProgram& program, WhereView* where) {
  std::copy(program.ops.begin(), program.ops.end(), where->ops);
  where->op_count = static_cast<uint32_t>(program.ops.size());
}

absl::Status ScanWhere(const WhereView& where, size_t stack, unsigned long long* count,
                       uint32_t* bitmap, uint64_t* tile_counts, cudaStream_t stream) {
  const ScanKernel kernel = KernelFor(where);
  const size_t shared = stack * kGroups * kScanThreads * sizeof(uint4);
  if (shared > 0) {
    RETURN_IF_ERROR(scan_memory.AllowMost(reinterpret_cast<const void*>(ScanTile<0>)));
  }
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "ScanTile", {static_cast<unsigned>(TilesOf(where.rows)), kScanThreads, shared}, stream,
      kernel, where, count, reinterpret_cast<uint16_t*>(bitmap), tile_counts);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
