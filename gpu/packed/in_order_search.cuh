#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "gpu/packed/leaf_answer.cuh"
#include "gpu/packed/packed_answer.cuh"
#include "gpu/packed/packed_queries.cuh"
#include "gpu/packed/packed_search.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/shared_memory.h"
#include "index/layout/packed_leaves.h"
#include "index/machine/status_macros.h"

// The search of sorted batches. Adjacent queries have the same or neighboring leaves, so that each
// leaf is read from memory once, no matter which lane reads it. One lane executes a whole query,
// with plain loads, whose lines the first-level cache keeps for the neighboring lanes. To hide
// latency, this search uses more warps than the common search (packed_search.cuh).
//
// The caller does not declare whether a batch is sorted. The kernel samples it, and if it is not
// sorted, returns within a few microseconds. A word tells the common search, which runs afterwards,
// whether the batch is done. Exact for any batch.

namespace cairn::gpu {

// For text, computing its numbers is the bottleneck, in any order.
template <typename Queries>
inline constexpr bool kSearchesInOrder = false;
template <typename Key>
inline constexpr bool kSearchesInOrder<NumberQueries<Key>> = true;

inline constexpr int kInOrderBlock = 256;
// Batches of at least kSampledBatch queries are sampled if there is at least one query per
// kMaxKeysApart keys. Sparser batches share no leaves, and smaller ones finish before a sample pays
// off.
inline constexpr size_t kSampledBatch = size_t{1} << 22;
inline constexpr size_t kMaxKeysApart = 128;
// A lane has two queries in flight if there is at least one query per kFewKeysApart keys, so that
// several lanes read most leaves; otherwise one, which allows more warps.
inline constexpr size_t kFewKeysApart = 4;

// Whether a batch of at least 32 queries is sorted, judged by 32 windows of 32 adjacent queries.
// Some windows may be unsorted, as in a batch of a few sorted pieces. Called by a block; all
// threads get the same result.
template <typename Queries>
__device__ bool IsInOrder(const QueryReader<Queries>& reader, size_t size) {
  constexpr int kWarps = kInOrderBlock / 32, kWindows = 4, kMin = 4 * kWarps * kWindows / 5;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  typename Queries::Key keys[kWindows];
#pragma unroll
  for (int i = 0; i < kWindows; ++i) {
    const int window = warp * kWindows + i;
    keys[i] = reader.Begin((size - 32) * window / (kWarps * kWindows - 1) + lane, true);
  }
  int ordered = 0;
#pragma unroll
  for (int i = 0; i < kWindows; ++i) {
    const typename Queries::Key before = __shfl_up_sync(0xffffffffu, keys[i], 1);
    ordered += __all_sync(0xffffffffu, lane == 0 || before <= keys[i]) ? 1 : 0;
  }
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (lane == 0) atomicAdd(&total, ordered);
  __syncthreads();
  return total >= kMin;
}

template <int kBits, PackedAnswer kAnswer, int kQueries, typename Queries, typename Directory>
__global__ void __launch_bounds__(kInOrderBlock)
    InOrderSearchKernel(PackedView view, Directory directory, PackedBatch<Queries> batch) {
  using Key = typename Queries::Key;
  const QueryReader<Queries> reader(batch.queries);
  if (!IsInOrder(reader, batch.size)) return;
  if (blockIdx.x == 0 && threadIdx.x == 0) *batch.is_done = 1;

  const int lane = static_cast<int>(threadIdx.x % 32);
  const size_t warps = size_t{gridDim.x} * (kInOrderBlock / 32);
  for (size_t step = (size_t{blockIdx.x} * kInOrderBlock + threadIdx.x) / 32;
       step * 32 * kQueries < batch.size; step += warps) {
    const size_t begin = step * 32 * kQueries + lane;
    Key keys[kQueries];
    uint32_t leaves[kQueries];
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      keys[u] = reader.Begin(begin + u * 32, begin + u * 32 < batch.size);
    }
    directory.template FindLeaves<false>(keys, leaves, nullptr);
    LineAnswer<kBits, kAnswer> answers[kQueries];
#pragma unroll
    for (int u = 0; u < kQueries; ++u) answers[u].line.Load(view.leaves + leaves[u]);
      // All queries are compared before any branch, so that their leaf reads are in flight
      // together.
#pragma unroll
    for (int u = 0; u < kQueries; ++u) answers[u].Compare(keys[u]);
    if (view.links) {
#pragma unroll
      for (int u = 0; u < kQueries; ++u) answers[u].FollowLinks(view.leaves, keys[u]);
    }
    // Computes all values before any write, so that the queries' remaining leaf reads are in flight
    // together, too.
    uint32_t values[kQueries], equal[kQueries];
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      const LineAnswer<kBits, kAnswer>& answer = answers[u];
      if constexpr (GivesPositions(kAnswer)) {
        values[u] = answer.line.position() + answer.slots;
      } else {
        values[u] = answer.line.row_id(__ffs(static_cast<int>(answer.slots)) - 1);
      }
      if constexpr (kAnswer == PackedAnswer::kRange) {
        equal[u] =
            view.repeats ? answer.CountEqual(view, keys[u]) : answer.Found(keys[u], view.links);
      }
    }
#pragma unroll
    for (int u = 0; u < kQueries; ++u) {
      const size_t i = begin + u * 32;
      if (i >= batch.size) continue;
      if constexpr (GivesPositions(kAnswer)) {
        WritePosition<kAnswer>(view, batch, i, reader.IsPastAll({}, keys[u], lane), values[u],
                               kAnswer == PackedAnswer::kRange ? equal[u] : 0);
      } else {
        WriteRow<kAnswer>(batch, i, values[u]);
      }
    }
  }
}

// Enqueues the search of a batch. If the batch is sorted, *batch.is_done changes from 0 to 1.
template <int kBits, PackedAnswer kAnswer, typename Queries, typename Directory>
absl::Status LaunchInOrderSearch(const PackedView& view, const Directory& directory,
                                 const PackedBatch<Queries>& batch, cudaStream_t stream) {
  const auto launch = [&](auto queries) -> absl::Status {
    const auto kernel =
        InOrderSearchKernel<kBits, kAnswer, decltype(queries)::value, Queries, Directory>;
    static ResidentBlocks resident_blocks;
    ASSIGN_OR_RETURN(
        const unsigned blocks,
        resident_blocks.Count(reinterpret_cast<const void*>(kernel), kInOrderBlock, 0));
    CAIRN_RETURN_IF_LAUNCH_FAILS("InOrderSearchKernel", LaunchShape{blocks, kInOrderBlock}, stream,
                                 kernel, view, directory, batch);
    return absl::OkStatus();
  };
  if (batch.size >= view.distinct / kFewKeysApart) return launch(std::integral_constant<int, 2>());
  return launch(std::integral_constant<int, 1>());
}

// Whether this search should be tried for a batch.
template <typename Queries>
bool IsWorthSampling(const PackedView& view, const PackedBatch<Queries>& batch) {
  return batch.size >= std::max<size_t>(kSampledBatch, view.distinct / kMaxKeysApart);
}

}  // namespace cairn::gpu
