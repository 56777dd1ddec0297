// kScan: reads one byte per row and set, in row order. A thread evaluates 32 rows together, whose
// codes are stored bit by bit. For each set, it has a word of the rows that may be in the set, and
// one of those that surely are. AND and OR of these words are those of sets. Rows that may be but
// are not surely in a set are looked up one by one. Bit-by-bit comparison: Li and Patel,
// "BitWeaving" (2013), section 3.2.
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
static_assert(kScanThreads * 32 == kTileRows);

// The rows, out of 32, that may be in a set, and those that surely are.
struct RowWords {
  uint32_t possible, sure;
};

__device__ inline RowWords Combined(bool all, RowWords a, RowWords b) {
  return all ? RowWords{a.possible & b.possible, a.sure & b.sure}
             : RowWords{a.possible | b.possible, a.sure | b.sure};
}

// A set in the form that a block keeps in shared memory.
struct alignas(16) ScannedSet {
  static constexpr uint32_t kWords = 2 * kCodes / 4;

  // With one range: possible_first, possible_last, sure_first and sure_last, each as eight words,
  // all ones for a set bit. Otherwise, for every four codes, four bits that mark the possible
  // codes, and then four that mark the sure ones; each is the number of a function of two bits
  // (PutFunctions).
  uint32_t words[kWords];
  uint32_t single;    // whether the set is one range
  uint32_t has_sure;  // whether any code is sure
};

__device__ inline void PutSet(const WhereView& where, uint32_t set, uint32_t i, ScannedSet* to) {
  const WhereSetState& state = where.states[set];
  const bool single = where.sets[set].ranges == 1;
  if (!single) {
    const uint32_t* const bits = i < kCodes / 4 ? state.possible : state.sure;
    const uint32_t four = i % (kCodes / 4);
    to->words[i] = (bits[four / 8] >> four % 8 * 4 & 15) * kScanThreads;
  } else if (i < 4 * kCodeBits) {
    const uint8_t codes[] = {state.possible_first, state.possible_last, state.sure_first,
                             state.sure_last};
    to->words[i] = codes[i / kCodeBits] >> i % kCodeBits & 1 ? ~uint32_t{0} : 0;
  }
  if (i == 0) {
    uint32_t sure = 0;
    for (const uint32_t word : state.sure) sure |= word;
    to->single = single;
    to->has_sure = sure != 0;
  }
}

// The codes of 32 rows.
struct CodeWords {
  uint32_t bits[kCodeBits];
};

__device__ inline CodeWords Words(uint4 low, uint4 high) {
  return {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
}

// AtLeast and AtMost: the codes that are at least, or at most, another code, given as words of all
// ones or zeros. Goes from the lowest bit up; a higher bit that differs decides.
__device__ inline uint32_t AtLeast(const CodeWords& codes, const uint32_t* other) {
  uint32_t is = ~uint32_t{0};
#pragma unroll
  for (uint32_t bit = 0; bit < kCodeBits; ++bit) {
    is = (other[bit] & codes.bits[bit] & is) | (~other[bit] & (codes.bits[bit] | is));
  }
  return is;
}
__device__ inline uint32_t AtMost(const CodeWords& codes, const uint32_t* other) {
  uint32_t is = ~uint32_t{0};
#pragma unroll
  for (uint32_t bit = 0; bit < kCodeBits; ++bit) {
    is = (other[bit] & (~codes.bits[bit] | is)) | (~other[bit] & ~codes.bits[bit] & is);
  }
  return is;
}

// The sixteen functions of two bits, numbered by which of their four values are 1. Writes function
// f to functions[f * kScanThreads].
__device__ inline void PutFunctions(uint32_t low, uint32_t high, uint32_t* functions) {
#pragma unroll
  for (int f = 0; f < 16; ++f) {
    functions[f * kScanThreads] = (f & 1 ? ~high & ~low : 0) | (f & 2 ? ~high & low : 0) |
                                  (f & 4 ? high & ~low : 0) | (f & 8 ? high & low : 0);
  }
}

// A function of the lower 2 + kLevel bits; `places` has its parts.
template <int kLevel>
__device__ inline uint32_t Chosen(const CodeWords& codes, const uint32_t* places,
                                  const uint32_t* functions) {
  if constexpr (kLevel == 0) {
    return functions[*places];
  } else {
    constexpr int kHalf = 1 << (kLevel - 1);
    const uint32_t low = Chosen<kLevel - 1>(codes, places, functions);
    const uint32_t high = Chosen<kLevel - 1>(codes, places + kHalf, functions);
    const uint32_t bit = codes.bits[kLevel + 1];
    return (bit & high) | (~bit & low);
  }
}

// `functions` is the thread's own area in shared memory, used for sets of several ranges.
__device__ inline RowWords Classify(const ScannedSet& set, const CodeWords& codes,
                                    uint32_t* functions) {
  if (set.single) {
    return {AtLeast(codes, set.words) & AtMost(codes, set.words + kCodeBits),
            AtLeast(codes, set.words + 2 * kCodeBits) & AtMost(codes, set.words + 3 * kCodeBits)};
  }
  constexpr int kLevels = kCodeBits - 2;
  PutFunctions(codes.bits[0], codes.bits[1], functions);
  return {Chosen<kLevels>(codes, set.words, functions),
          set.has_sure ? Chosen<kLevels>(codes, set.words + kCodes / 4, functions) : 0};
}

// The destination of a block's results: adds the sum to *count, or writes bits and the sum for its
// tile.
struct ScanOutput {
  unsigned long long* count;
  uint32_t* bitmap;
  uint64_t* tile_counts;
};

__device__ inline void PutRows(uint32_t rows, const ScanOutput& output) {
  if (output.count != nullptr) {
    AddBlockCount(__popc(rows), output.count);
    return;
  }
  output.bitmap[blockIdx.x * kScanThreads + threadIdx.x] = rows;
  __shared__ unsigned long long tile_count;
  if (threadIdx.x == 0) tile_count = 0;
  __syncthreads();
  AddBlockCount(__popc(rows), &tile_count);
  if (threadIdx.x == 0) output.tile_counts[blockIdx.x] = tile_count;
}

// The existing ones of a thread's 32 rows.
__device__ inline uint32_t RowsThere(RowId first, uint32_t rows) {
  return first >= rows        ? 0
         : rows - first >= 32 ? ~uint32_t{0}
                              : (uint32_t{1} << (rows - first)) - 1;
}

// One block per tile. For kSets sets that are all combined by AND (`all`) or by OR, with their
// codes loaded together.
template <int kSets>
__global__ void __launch_bounds__(kScanThreads)
    ScanSets(const __grid_constant__ WhereView where, bool all, ScanOutput output) {
  extern __shared__ uint4 scan_memory[];  // functions
  __shared__ ScannedSet sets[kSets];
  const uint32_t group = blockIdx.x * kScanThreads + threadIdx.x;
  uint4 low[kSets], high[kSets];
#pragma unroll
  for (int i = 0; i < kSets; ++i) {
    low[i] = __ldg(where.sets[i].column.codes + 2 * group);
    high[i] = __ldg(where.sets[i].column.codes + 2 * group + 1);
  }
  for (uint32_t i = threadIdx.x; i < kSets * ScannedSet::kWords; i += kScanThreads) {
    PutSet(where, i / ScannedSet::kWords, i % ScannedSet::kWords, &sets[i / ScannedSet::kWords]);
  }
  __syncthreads();
  RowWords value;
  uint32_t open_in[kSets];
#pragma unroll
  for (int i = 0; i < kSets; ++i) {
    const RowWords in_set = Classify(sets[i], Words(low[i], high[i]),
                                     reinterpret_cast<uint32_t*>(scan_memory) + threadIdx.x);
    value = i == 0 ? in_set : Combined(all, value, in_set);
    open_in[i] = in_set.possible & ~in_set.sure;
  }
  const RowId first = group * 32;
  const uint32_t there = RowsThere(first, where.rows);
  uint32_t rows = value.sure & there;
  // Such a row is in all sets that are conclusive for it (AND), or in none of them (OR).
  for (uint32_t open = value.possible & ~value.sure & there; open != 0; open &= open - 1) {
    const int i = __ffs(static_cast<int>(open)) - 1;
    bool in = all;
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      if (in == all && (open_in[set] >> i & 1) != 0) {
        in = HasPosition(where, set, __ldg(where.sets[set].column.positions + first + i));
      }
    }
    rows |= uint32_t{in} << i;
  }
  PutRows(rows, output);
}

// The same for any program. Shared memory holds the functions, if a set has several ranges, the
// sets, and the stack.
__global__ void __launch_bounds__(kScanThreads)
    ScanProgram(const __grid_constant__ WhereView where, uint32_t function_words,
                ScanOutput output) {
  extern __shared__ uint4 scan_memory[];
  uint32_t* const functions = reinterpret_cast<uint32_t*>(scan_memory);
  ScannedSet* const sets = reinterpret_cast<ScannedSet*>(functions + function_words);
  RowWords* const stack = reinterpret_cast<RowWords*>(sets + where.set_count) + threadIdx.x;
  const uint32_t group = blockIdx.x * kScanThreads + threadIdx.x;
  for (uint32_t i = threadIdx.x; i < where.set_count * ScannedSet::kWords; i += kScanThreads) {
    PutSet(where, i / ScannedSet::kWords, i % ScannedSet::kWords, &sets[i / ScannedSet::kWords]);
  }
  __syncthreads();
  RowWords value = {};
  uint32_t depth = 0;
  for (uint32_t i = 0; i < where.op_count; ++i) {
    const WhereOp op = where.ops[i];
    RowWords operand = value;
    if (op.step == WhereStep::kLoad || op.step == WhereStep::kAnd || op.step == WhereStep::kOr) {
      const uint4* const codes = where.sets[op.set].column.codes + 2 * group;
      operand =
          Classify(sets[op.set], Words(__ldg(codes), __ldg(codes + 1)), functions + threadIdx.x);
    }
    switch (op.step) {
      case WhereStep::kLoad:
        value = operand;
        break;
      case WhereStep::kAnd:
      case WhereStep::kOr:
        value = Combined(op.step == WhereStep::kAnd, value, operand);
        break;
      case WhereStep::kPush:
        stack[depth++ * kScanThreads] = value;
        break;
      case WhereStep::kPopAnd:
      case WhereStep::kPopOr:
        value = Combined(op.step == WhereStep::kPopAnd, value, stack[--depth * kScanThreads]);
        break;
      case WhereStep::kRequire:
        break;
    }
  }
  const RowId first = group * 32;
  const uint32_t there = RowsThere(first, where.rows);
  uint32_t rows = value.sure & there;
  for (uint32_t open = value.possible & ~value.sure & there; open != 0; open &= open - 1) {
    const int i = __ffs(static_cast<int>(open)) - 1;
    const RowId one[1] = {first + i};
    rows |= RowsThatPass<1>(where, one, 1) << i;
  }
  PutRows(rows, output);
}

SharedMemoryOfKernel program_memory;

using SetsKernel = void (*)(WhereView, bool, ScanOutput);

// The kernel for sets that are all combined by AND or by OR; null for other programs.
SetsKernel KernelForSets(const WhereView& where) {
  constexpr SetsKernel kKernels[] = {nullptr, ScanSets<1>, ScanSets<2>, ScanSets<3>, ScanSets<4>};
  if (where.set_count >= std::size(kKernels) || where.op_count != where.set_count) return nullptr;
  for (uint32_t i = 2; i < where.op_count; ++i) {
    if (where.ops[i].step != where.ops[1].step) return nullptr;
  }
  return kKernels[where.set_count];
}

}  // namespace

void SetProgram(const WhereProgram& program, WhereView* where) {
  std::copy(program.ops.begin(), program.ops.end(), where->ops);
  where->op_count = static_cast<uint32_t>(program.ops.size());
}

absl::Status ScanWhere(const WhereView& where, size_t stack, unsigned long long* count,
                       uint32_t* bitmap, uint64_t* tile_counts, cudaStream_t stream) {
  const bool has_lists = std::any_of(where.sets, where.sets + where.set_count,
                                     [](const WhereSetView& set) { return set.ranges != 1; });
  const uint32_t function_words = has_lists ? 16 * kScanThreads : 0;
  LaunchShape shape{static_cast<unsigned>(TilesOf(where.rows)), kScanThreads,
                    function_words * sizeof(uint32_t)};
  const ScanOutput output{count, bitmap, tile_counts};
  if (const SetsKernel kernel = KernelForSets(where); kernel != nullptr) {
    const bool all = where.op_count == 1 || where.ops[1].step == WhereStep::kAnd;
    CAIRN_RETURN_IF_LAUNCH_FAILS("ScanSets", shape, stream, kernel, where, all, output);
    return absl::OkStatus();
  }
  shape.shared_bytes +=
      where.set_count * sizeof(ScannedSet) + stack * kScanThreads * sizeof(RowWords);
  RETURN_IF_ERROR(program_memory.AllowMost(reinterpret_cast<const void*>(ScanProgram)));
  CAIRN_RETURN_IF_LAUNCH_FAILS("ScanProgram", shape, stream, ScanProgram, where, function_words,
                               output);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
