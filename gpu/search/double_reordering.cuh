#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/search/search_kernel.cuh"

namespace cairn::gpu {

// SearchBatch for a searcher of one lane a query, over entries of `bytes` bytes: by policy
// Otherwise, or, where it is faster, with double reordering, 2048 queries in a block: where the
// first-level caches hold little of the entries and there are enough blocks to fill the device. For
// 2^27 queries on an H200, 32-bit keys, that takes 8.9 ms in place of 10.4 among the 2^20 entries
// of a sorted array, 13.7 of 16.3 among 2^24, 27.5 of 45 among 2^28 (cairn_bench,
// Lightweight/AO+BS). Pinning, static schedules and more queries in flight gained nothing there.
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
