#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "gpu/packed/in_order_search.cuh"
#include "gpu/packed/leaf_answer.cuh"
#include "gpu/packed/packed_answer.cuh"
#include "gpu/packed/packed_leaf.cuh"
#include "gpu/packed/packed_queries.cuh"
#include "gpu/packed/packed_search.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

// The common search of packed leaves under any directory. Large sorted batches have another search
// (in_order_search.cuh). A warp takes 32 queries at a time, twice. Each lane finds the leaves of
// its own queries in the directory. Then the four lanes of a quad read their queries' leaves
// together, one after another. So one instruction reads eight leaves, and sixty-four are in flight.
//
// A directory is a plain struct with
//
//   size_t shared_bytes() const        bytes that Load fills
//   void Load(void* shared) const      called by the whole block
//   void FindLeaves<bool kStaged>(keys, leaves, shared) const
//     the leaves of each lane's keys, called by the whole warp; with kStaged, `shared` must have
//     been filled by Load.

namespace cairn::gpu {

// Queries per lane that are in flight together.
template <typename Queries>
inline constexpr int kPackedQueries = 2;
template <>
inline constexpr int kPackedQueries<TextQueries<WideKey>> = 1;
// Steps that a warp takes from the counter at once.
inline constexpr unsigned kPackedChunk = 8;
// Threads per block: kLargeBlock fills a multiprocessor, for large batches; kSmallBlock spreads a
// batch that does not fill the device.
template <typename Queries>
inline constexpr int kLargeBlock = 1024;
template <>
inline constexpr int kLargeBlock<TextQueries<WideKey>> = 768;
inline constexpr int kSmallBlock = 64;
// Large blocks that must fit a multiprocessor, which limits the registers per thread; 0: no limit.
template <typename Queries>
inline constexpr int kBlocksAtOnce = 0;
template <>
inline constexpr int kBlocksAtOnce<TextQueries<WideKey>> = 2;
// From this many queries on, blocks are persistent, keep the directory's top in shared memory and
// take steps from a counter. This requires that a block can have that much memory. The start takes
// 20 us longer.
template <typename Queries>
inline constexpr size_t kLargeBatch = size_t{1} << 20;
template <typename Key>
inline constexpr size_t kLargeBatch<TextQueries<Key>> = size_t{1} << 17;

// Offset in shared memory of the data that queries need.
template <typename Directory>
__host__ __device__ inline size_t BehindDirectory(const Directory& directory) {
  return (directory.shared_bytes() + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
}

// The part of a key that leaves of kBits bits compare: its low 64 bits, or all.
template <int kBits, typename Key>
using ComparedPart =
    std::conditional_t<sizeof(Key) == sizeof(WideKey), typename LeafLayout<kBits>::Key, Key>;

template <int kBits, PackedAnswer kAnswer, bool kStaged, typename Queries, typename Directory>
__global__ void __launch_bounds__(kStaged ? kLargeBlock<Queries> : kSmallBlock,
                                  kStaged ? kBlocksAtOnce<Queries> : 0)
    PackedSearchKernel(PackedView view, Directory directory, PackedBatch<Queries> batch) {
  using Key = typename Queries::Key;
  using Part = ComparedPart<kBits, Key>;
  using Reader = QueryReader<Queries>;
  constexpr int kQueries = kPackedQueries<Queries>;
  const Reader reader(batch.queries);
  if constexpr (kStaged) {
    if (*batch.is_done != 0) return;
  }
  extern __shared__ uint4 staged[];
  void* const staged_queries =
      kStaged ? reinterpret_cast<char*>(staged) + BehindDirectory(directory) : nullptr;
  if constexpr (kStaged) {
    directory.Load(staged);
    reader.Load(staged_queries);
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x % 32), part = lane % 4;
  constexpr size_t kStep = 32 * kQueries;
  const size_t steps = (batch.size + kStep - 1) / kStep;

  const auto search = [&](size_t step) {
    const size_t begin = step * kStep;
    typename Reader::Start starts[kQueries];
    Key keys[kQueries];
    typename Reader::Notes notes[kQueries];
    uint32_t leaves[kQueries];
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      const size_t i = begin + u * 32 + lane;
      starts[u] = reader.Begin(i, i < batch.size);
    }
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      keys[u] = reader.template Read<kStaged>(starts[u], staged_queries, &notes[u]);
    }
    directory.template FindLeaves<kStaged>(keys, leaves, staged);

    QuadAnswer<kBits, kAnswer> answers[kQueries];
#pragma unroll
    for (int u = 0; u < kQueries; ++u) answers[u].Load(view.leaves, leaves[u], part);
    // Everything that needs all leaves comes first, so that no read is delayed until other leaves
    // are used.
    bool linked[kQueries] = {};
    if (view.links) {
#pragma unroll
      for (int u = 0; u < kQueries; ++u) linked[u] = answers[u].HasLink(part);
    }
    bool go_on[kQueries], any = false;
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      go_on[u] = answers[u].Compare(static_cast<Part>(keys[u]), linked[u], part);
      any = any || go_on[u];
    }
    if constexpr (!GivesPositions(kAnswer)) {
      while (view.links && __any_sync(0xffffffffu, any)) {
        any = false;
#pragma unroll
        for (int u = 0; u < kQueries; ++u) {
          if (!__any_sync(0xffffffffu, go_on[u])) continue;
          go_on[u] = answers[u].Follow(view.leaves, static_cast<Part>(keys[u]), go_on[u], part);
          any = any || go_on[u];
        }
      }
    }
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      const size_t i = begin + u * 32 + lane;
      const Part key = static_cast<Part>(keys[u]);
      const bool may_be_there = reader.MayBeThere(notes[u], lane);
      if constexpr (GivesPositions(kAnswer)) {
        Position position = answers[u].position(part) + answers[u].slots;
        uint32_t equal = 0;
        if constexpr (kAnswer == PackedAnswer::kRange) {
          equal = view.repeats ? answers[u].CountEqual(view, key, part)
                               : answers[u].Found(key, linked[u], part);
        }
        if (view.links && __any_sync(0xffffffffu, go_on[u])) {
          // Each lane on its own: the leaves' registers are free at this point.
          const uint32_t link = answers[u].Link(part);
          if (go_on[u]) {
            LineAnswer<kBits, kAnswer> answer;
            answer.line.Load(view.leaves + link);
            answer.Compare(key);
            answer.FollowLinks(view.leaves, key);
            position = answer.line.position() + answer.slots;
            if constexpr (kAnswer == PackedAnswer::kRange) {
              equal = view.repeats ? answer.CountEqual(view, key) : answer.Found(key, true);
            }
          }
        }
        if (i >= batch.size) continue;
        WritePosition<kAnswer>(view, batch, i, reader.IsPastAll(notes[u], key, lane), position,
                               may_be_there ? equal : 0);
      } else {
        const RowId row = answers[u].Row(answers[u].slots, part);
        if (i < batch.size) WriteRow<kAnswer>(batch, i, may_be_there ? row : kNoRow);
      }
    }
  };

  if constexpr (kStaged) {
    while (true) {
      unsigned first = 0;
      if (lane == 0) first = atomicAdd(batch.next_step, kPackedChunk);
      first = __shfl_sync(0xffffffffu, first, 0);
      if (first >= steps) return;
      const size_t last = min(size_t{first} + kPackedChunk, steps);
      for (size_t step = first; step < last; ++step) search(step);
    }
  } else {
    const size_t step = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
    if (step < steps) search(step);
  }
}

// Enqueues the search of a batch.
template <int kBits, PackedAnswer kAnswer, typename Queries, typename Directory>
absl::Status LaunchPackedSearch(const PackedView& view, const Directory& directory,
                                PackedBatch<Queries> batch, cudaStream_t stream) {
  const size_t shared =
      BehindDirectory(directory) + QueryReader<Queries>(batch.queries).shared_bytes();
  bool staged = batch.size >= kLargeBatch<Queries>;
  if (staged) {
    ASSIGN_OR_RETURN(const size_t max_shared, MostSharedBytes());
    staged = shared <= max_shared;
  }
  if (!staged) {
    constexpr size_t kPerBlock = size_t{kSmallBlock} * kPackedQueries<Queries>;
    const auto blocks = static_cast<unsigned>((batch.size + kPerBlock - 1) / kPerBlock);
    CAIRN_RETURN_IF_LAUNCH_FAILS("PackedSearchKernel", LaunchShape{blocks, kSmallBlock}, stream,
                                 PackedSearchKernel<kBits, kAnswer, false, Queries, Directory>,
                                 view, directory, batch);
    return absl::OkStatus();
  }
  DeviceBuffer<unsigned> words;
  RETURN_IF_ERROR(Resize(&words, 2, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(words.data(), 0, words.bytes(), stream));
  batch.next_step = words.data();
  batch.is_done = words.data() + 1;
  if constexpr (kSearchesInOrder<Queries>) {
    if (IsWorthSampling(view, batch)) {
      RETURN_IF_ERROR((LaunchInOrderSearch<kBits, kAnswer>(view, directory, batch, stream)));
    }
  }
  const auto kernel = PackedSearchKernel<kBits, kAnswer, true, Queries, Directory>;
  static SharedMemoryOfKernel shared_memory;
  RETURN_IF_ERROR(shared_memory.AllowMost(reinterpret_cast<const void*>(kernel)));
  static ResidentBlocks resident_blocks;
  ASSIGN_OR_RETURN(
      const unsigned blocks,
      resident_blocks.Count(reinterpret_cast<const void*>(kernel), kLargeBlock<Queries>, shared));
  CAIRN_RETURN_IF_LAUNCH_FAILS("PackedSearchKernel",
                               LaunchShape{blocks, kLargeBlock<Queries>, shared}, stream, kernel,
                               view, directory, batch);
  return absl::OkStatus();
}

// The same, for leaf bits and a result type that are only known at run time.
template <typename Queries, typename Directory>
absl::Status SearchPacked(const PackedView& view, const Directory& directory, PackedAnswer answer,
                          const PackedBatch<Queries>& batch, cudaStream_t stream) {
  constexpr size_t kKeyBytes = sizeof(typename Queries::Key);
  const auto with_answer = [&](auto bits) -> absl::Status {
    constexpr int kBits = decltype(bits)::value;
    switch (answer) {
      case PackedAnswer::kPosition:
        return LaunchPackedSearch<kBits, PackedAnswer::kPosition>(view, directory, batch, stream);
      case PackedAnswer::kRange:
        return LaunchPackedSearch<kBits, PackedAnswer::kRange>(view, directory, batch, stream);
      case PackedAnswer::kRow:
        return LaunchPackedSearch<kBits, PackedAnswer::kRow>(view, directory, batch, stream);
      case PackedAnswer::kFound:
        return LaunchPackedSearch<kBits, PackedAnswer::kFound>(view, directory, batch, stream);
    }
    return absl::InternalError("SearchPacked: unknown result type");
  };
  if constexpr (kKeyBytes == 16) {
    if (view.bits == 64) return with_answer(std::integral_constant<int, 64>());
    return with_answer(std::integral_constant<int, 128>());
  } else {
    if (view.bits == 16) return with_answer(std::integral_constant<int, 16>());
    if (view.bits == 32) return with_answer(std::integral_constant<int, 32>());
    if constexpr (kKeyBytes == 8) {
      if (view.bits == 48) return with_answer(std::integral_constant<int, 48>());
      return with_answer(std::integral_constant<int, 64>());
    }
    return absl::InternalError("SearchPacked: no leaves with this number of bits");
  }
}

}  // namespace cairn::gpu
