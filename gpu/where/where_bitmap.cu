// kBitmap: sorts the rows of all sets' entries into partitions by their leading bits. It combines
// the sets of a partition as bitmaps in shared memory, where setting a bit needs no device memory
// access.
#include <cub/block/block_scan.cuh>

#include <algorithm>

#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "gpu/where/where_search.h"
#include "gpu/where/where_test.cuh"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kSortThreads = 512;
constexpr int kSortedRows = 16;                              // per thread at once
constexpr uint32_t kSortChunk = kSortThreads * kSortedRows;  // per block
constexpr int kPartThreads = 1024;
constexpr unsigned kMaxChunks = 4096;  // maximum blocks per set
constexpr int kPartsOfThread = kMaxParts / kSortThreads;
static_assert(kMaxParts % kSortThreads == 0);

// Loads the rows of a chunk of a set's entries; each thread gets every kSortThreads-th one, and
// kNoRow past the last one.
__device__ inline void LoadChunk(const WhereView& where, uint32_t set, uint32_t chunk,
                                 RowId (&rows)[kSortedRows]) {
  const WhereSetView& view = where.sets[set];
  const WhereSetState& state = where.states[set];
#pragma unroll
  for (int i = 0; i < kSortedRows; ++i) {
    const uint64_t entry = uint64_t{chunk} * kSortChunk + i * kSortThreads + threadIdx.x;
    rows[i] = kNoRow;
    if (entry >= state.rows) continue;
    Position position;
    if (view.ranges == 1) {
      position = state.begin + static_cast<uint32_t>(entry);
    } else {
      const uint32_t range =
          RangeAt(where.before + view.first_range, view.ranges, static_cast<uint32_t>(entry));
      position = where.begins[view.first_range + range] +
                 (static_cast<uint32_t>(entry) - where.before[view.first_range + range]);
    }
    rows[i] = __ldg(view.column.rows + position);
  }
}

// Counts the rows of each set in each partition: counts[set * parts + part].
__global__ void __launch_bounds__(kSortThreads)
    CountParts(const __grid_constant__ WhereView where, int part_bits, uint32_t parts,
               uint32_t* counts) {
  __shared__ uint32_t histogram[kMaxParts];
  const uint32_t set = blockIdx.y;
  const uint32_t chunks = (where.states[set].rows + uint64_t{kSortChunk} - 1) / kSortChunk;
  if (blockIdx.x >= chunks) return;
  for (uint32_t i = threadIdx.x; i < parts; i += kSortThreads) histogram[i] = 0;
  __syncthreads();
  for (uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    RowId rows[kSortedRows];
    LoadChunk(where, set, chunk, rows);
#pragma unroll
    for (int i = 0; i < kSortedRows; ++i) {
      if (rows[i] != kNoRow) atomicAdd(&histogram[rows[i] >> part_bits], 1u);
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < parts; i += kSortThreads) {
    if (histogram[i] != 0) atomicAdd(counts + set * parts + i, histogram[i]);
  }
}

// Stores the rows of each set and partition contiguously, starting at next[set * parts +
// partition], which it advances. A block first sorts a chunk in shared memory, so that it writes
// the rows of one partition together.
__global__ void __launch_bounds__(kSortThreads)
    SortParts(const __grid_constant__ WhereView where, int part_bits, uint32_t parts,
              uint32_t* next, RowId* sorted) {
  using Scan = cub::BlockScan<uint32_t, kSortThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ uint32_t starts[kMaxParts];
  // kSortChunk staged rows, then `shifts`: for each partition, the position of a row in `sorted`
  // minus its position in `staged`.
  extern __shared__ RowId staged[];
  uint32_t* const shifts = staged + kSortChunk;
  const uint32_t set = blockIdx.y;
  const uint32_t entries = where.states[set].rows;
  const uint32_t chunks = (entries + uint64_t{kSortChunk} - 1) / kSortChunk;
  for (uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    for (uint32_t i = threadIdx.x; i < kMaxParts; i += kSortThreads) starts[i] = 0;
    __syncthreads();
    RowId rows[kSortedRows];
    uint32_t ranks[kSortedRows];
    LoadChunk(where, set, chunk, rows);
#pragma unroll
    for (int i = 0; i < kSortedRows; ++i) {
      if (rows[i] != kNoRow) ranks[i] = atomicAdd(&starts[rows[i] >> part_bits], 1u);
    }
    __syncthreads();
    uint32_t counts[kPartsOfThread], begins[kPartsOfThread];
#pragma unroll
    for (int i = 0; i < kPartsOfThread; ++i) counts[i] = starts[threadIdx.x * kPartsOfThread + i];
    Scan(scratch).ExclusiveSum(counts, begins);
#pragma unroll
    for (int i = 0; i < kPartsOfThread; ++i) {
      const uint32_t part = threadIdx.x * kPartsOfThread + i;
      starts[part] = begins[i];
      if (counts[i] != 0) {
        shifts[part] = atomicAdd(next + set * parts + part, counts[i]) - begins[i];
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSortedRows; ++i) {
      if (rows[i] != kNoRow) staged[starts[rows[i] >> part_bits] + ranks[i]] = rows[i];
    }
    __syncthreads();
    const uint32_t size = min(kSortChunk, entries - chunk * kSortChunk);
    for (uint32_t i = threadIdx.x; i < size; i += kSortThreads) {
      sorted[shifts[staged[i] >> part_bits] + i] = staged[i];
    }
    __syncthreads();
  }
}

// One block per partition.
__global__ void __launch_bounds__(kPartThreads)
    CombineParts(const __grid_constant__ WhereView where, int part_bits, uint32_t parts,
                 const uint32_t* ends, const RowId* sorted, unsigned long long* count,
                 uint32_t* bitmap) {
  extern __shared__ uint32_t bitmaps[];  // the stack, the value after it, and space for one set
  const uint32_t words = uint32_t{1} << (part_bits - 5), mask = (uint32_t{1} << part_bits) - 1;
  const uint32_t part = blockIdx.x;
  uint32_t* value = bitmaps;
  const auto for_each_word = [&](auto body) {
    for (uint32_t i = threadIdx.x; i < words; i += kPartThreads) body(i);
  };
  const auto clear = [&](uint32_t* bits) {
    for_each_word([&](uint32_t i) { bits[i] = 0; });
    __syncthreads();
  };
  const auto set_bits = [&](uint32_t set, uint32_t* bits) {
    const uint32_t at = set * parts + part, end = ends[at];
    for (uint32_t i = (at == 0 ? 0 : ends[at - 1]) + threadIdx.x; i < end; i += kPartThreads) {
      const uint32_t row = __ldcs(sorted + i) & mask;
      atomicOr(bits + row / 32, uint32_t{1} << row % 32);
    }
    __syncthreads();
  };
  for (uint32_t i = 0; i < where.op_count; ++i) {
    const WhereOp op = where.ops[i];
    switch (op.step) {
      case WhereStep::kLoad:
        clear(value);
        set_bits(op.set, value);
        break;
      case WhereStep::kAnd: {
        uint32_t* const other = value + words;
        clear(other);
        set_bits(op.set, other);
        for_each_word([&](uint32_t w) { value[w] &= other[w]; });
        __syncthreads();
        break;
      }
      case WhereStep::kOr:
        set_bits(op.set, value);
        break;
      case WhereStep::kPush:
        value += words;
        break;
      case WhereStep::kPopAnd:
      case WhereStep::kPopOr: {
        const uint32_t* const top = value;
        value -= words;
        const bool all = op.step == WhereStep::kPopAnd;
        for_each_word([&](uint32_t w) { value[w] = all ? value[w] & top[w] : value[w] | top[w]; });
        __syncthreads();
        break;
      }
      case WhereStep::kRequire:
        break;
    }
  }
  uint32_t found = 0;
  for_each_word([&](uint32_t w) {
    const uint64_t at = uint64_t{part} * words + w;
    found += __popc(value[w]);
    // The last partition may extend past the bitmap.
    if (bitmap != nullptr && at < TilesOf(where.rows) * (kTileRows / 32)) bitmap[at] = value[w];
  });
  if (count != nullptr) AddBlockCount(found, count);
}

SharedMemoryOfKernel sort_memory, combine_memory;

}  // namespace

absl::Status BitmapWhere(const WhereView& where, size_t stack,
                         absl::Span<const EntryEstimate> entries, int part_bits,
                         unsigned long long* count, uint32_t* bitmap, cudaStream_t stream) {
  const auto parts =
      static_cast<uint32_t>((uint64_t{where.rows} + (uint64_t{1} << part_bits) - 1) >> part_bits);
  const size_t lists = size_t{where.set_count} * parts;
  uint64_t all = 0, most = 0;
  for (const EntryEstimate& of : entries) {
    all += of.most;
    most = std::max(most, of.most);
  }
  ASSIGN_OR_RETURN(const auto ends, DeviceBuffer<uint32_t>::Allocate(lists, stream));
  ASSIGN_OR_RETURN(const auto next, DeviceBuffer<uint32_t>::Allocate(lists + 1, stream));
  ASSIGN_OR_RETURN(const auto sorted, DeviceBuffer<RowId>::Allocate(all, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(ends.data(), 0, ends.bytes(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(next.data(), 0, sizeof(uint32_t), stream));
  const auto chunks = static_cast<unsigned>(
      std::clamp<uint64_t>((most + kSortChunk - 1) / kSortChunk, 1, kMaxChunks));
  const dim3 grid(chunks, where.set_count);
  CAIRN_RETURN_IF_LAUNCH_FAILS("CountParts", {grid, kSortThreads}, stream, CountParts, where,
                               part_bits, parts, ends.data());
  RETURN_IF_ERROR(
      InclusiveScan(ends.data(), ends.data(), lists, ::cuda::std::plus<uint32_t>(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(next.data() + 1, ends.data(), ends.bytes(),
                                             cudaMemcpyDeviceToDevice, stream));
  RETURN_IF_ERROR(sort_memory.AllowMost(reinterpret_cast<const void*>(SortParts)));
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "SortParts", {grid, kSortThreads, (kSortChunk + kMaxParts) * sizeof(uint32_t)}, stream,
      SortParts, where, part_bits, parts, next.data(), sorted.data());
  RETURN_IF_ERROR(combine_memory.AllowMost(reinterpret_cast<const void*>(CombineParts)));
  CAIRN_RETURN_IF_LAUNCH_FAILS(
      "CombineParts", {parts, kPartThreads, (stack + 2) << (part_bits - 3)}, stream, CombineParts,
      where, part_bits, parts, ends.data(), sorted.data(), count, bitmap);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
