#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/search/search_kernel.cuh"

namespace cairn::gpu {

// SearchBatch for a searcher with one lane per query, over entries of `bytes` bytes in total. Uses
// policy Otherwise, or double reordering of 2048 queries per block if that is faster: if the
// first-level caches hold only a small part of the entries, and there are enough blocks to fill the
// device. For 2^27 queries with 32-bit keys on an H200, double reordering takes 8.9 ms for a sorted
// array of 2^20 entries (without: 10.4 ms), 13.7 ms (16.3 ms) for 2^24, and 27.5 ms (45 ms) for
// 2^28 (cairn_bench, Lightweight/AO+BS). Pinning, static schedules and more queries in flight
// gained nothing there.
template <typename Otherwise, typename Searcher>
absl::Status SearchBatchReordered(const Searcher& searcher, uint64_t bytes, size_t entries,
                                  Operation query, DeviceKeys keys, void* results,
                                  cudaStream_t stream) {
  static_assert(Searcher::kLanes == 1);
  constexpr uint64_t kCachedBytes = uint64_t{4} << 20;
  constexpr size_t kManyQueries = size_t{1} << 20;
  if (bytes > kCachedBytes && keys.size() >= kManyQueries) {
    using Reordered = SearchPolicy<128, 16, 1, Reorder::kDouble>;
    return SearchBatch<Reordered>(searcher, entries, query, keys, results, stream);
  }
  return SearchBatch<Otherwise>(searcher, entries, query, keys, results, stream);
}

}  // namespace cairn::gpu
