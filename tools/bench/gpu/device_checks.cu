// The checks that device_data.h declares: simple kernels that compare answers with the data's rule
// or the sorted run.
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

// The number of keys that are less than (or at most, if `inclusive`) `key`.
template <typename Key>
__device__ size_t Rank(const Key* keys, size_t n, Key key, bool inclusive) {
  size_t low = 0, high = n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (keys[middle] < key || (inclusive && keys[middle] == key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// One warp per range.
template <typename Key>
__global__ void CountWrongMatches(const Key* keys, const RowId* rows, size_t n, const Key* lower,
                                  const Key* upper, size_t size, const uint64_t* offsets,
                                  const RowId* row_ids, Wrong* wrong) {
  constexpr int kLanes = 32;
  const unsigned lane = threadIdx.x % kLanes;
  const size_t warps = size_t{gridDim.x} * blockDim.x / kLanes;
  for (size_t i = (size_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes; i < size; i += warps) {
    const size_t begin = Rank(keys, n, lower[i], false), end = Rank(keys, n, upper[i], true);
    const size_t count = end > begin ? end - begin : 0;
    bool right = offsets[i + 1] - offsets[i] == count && (i != 0 || offsets[0] == 0);
    for (size_t j = lane; right && j < count; j += kLanes) {
      right = row_ids[offsets[i] + j] == rows[begin + j];
    }
    if (!__all_sync(~0u, right) && lane == 0) wrong->Count(i);
  }
}

}  // namespace

template <typename Key>
absl::Status CheckFirstRows(const QuerySet<Key>& queries, size_t first, size_t size,
                            const RowId* row_ids, cudaStream_t stream) {
  const RowId* expected = queries.row_ids.data() + first;
  return CheckEach(size, stream, [=] __device__(size_t i) { return row_ids[i] != expected[i]; });
}

template <typename Key>
absl::Status CheckFound(const QuerySet<Key>& queries, size_t first, size_t size, const bool* found,
                        cudaStream_t stream) {
  const RowId* expected = queries.row_ids.data() + first;
  return CheckEach(size, stream,
                   [=] __device__(size_t i) { return found[i] != (expected[i] != kNoRow); });
}

template <typename Key>
absl::Status CheckPositions(const EntrySet<Key>& entries, const QuerySet<Key>& queries,
                            size_t first, size_t size, const Position* positions,
                            cudaStream_t stream) {
  const Key* keys = entries.run.keys.data();
  const Key* asked = queries.keys.data() + first;
  const size_t n = entries.size();
  return CheckEach(size, stream, [=] __device__(size_t i) {
    const size_t p = positions[i];
    return p > n || (p > 0 && keys[p - 1] >= asked[i]) || (p < n && keys[p] < asked[i]);
  });
}

template <typename Key>
absl::Status CheckFirstRowsOf(const QuerySet<Key>& queries, size_t size, const uint32_t* query_of,
                              const RowId* row_ids, cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceBuffer<uint32_t> answers, DeviceBuffer<uint32_t>::Allocate(size, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(answers.data(), 0, answers.bytes(), stream));
  const RowId* expected = queries.row_ids.data();
  uint32_t* answered = answers.data();
  return CheckEach(size, stream, [=] __device__(size_t i) {
    const uint32_t query = query_of[i];
    return query >= size || atomicAdd(&answered[query], 1u) != 0 || row_ids[i] != expected[query];
  });
}

template <typename Key>
absl::Status CheckMatches(const EntrySet<Key>& entries, const Key* lower, const Key* upper,
                          size_t size, const uint64_t* offsets, const RowId* row_ids,
                          cudaStream_t stream) {
  return Check(size, stream, [&](Wrong* wrong) {
    CountWrongMatches<<<SimpleBlocks(32 * size), kSimpleThreads, 0, stream>>>(
        entries.run.keys.data(), entries.run.row_ids.data(), entries.size(), lower, upper, size,
        offsets, row_ids, wrong);
  });
}

#define CAIRN_INSTANTIATE(Key)                                                                     \
  template absl::Status CheckFirstRows(const QuerySet<Key>&, size_t, size_t, const RowId*,         \
                                       cudaStream_t);                                              \
  template absl::Status CheckFound(const QuerySet<Key>&, size_t, size_t, const bool*,              \
                                   cudaStream_t);                                                  \
  template absl::Status CheckPositions(const EntrySet<Key>&, const QuerySet<Key>&, size_t, size_t, \
                                       const Position*, cudaStream_t);                             \
  template absl::Status CheckFirstRowsOf(const QuerySet<Key>&, size_t, const uint32_t*,            \
                                         const RowId*, cudaStream_t);                              \
  template absl::Status CheckMatches(const EntrySet<Key>&, const Key*, const Key*, size_t,         \
                                     const uint64_t*, const RowId*, cudaStream_t);
CAIRN_INSTANTIATE(uint32_t)
CAIRN_INSTANTIATE(uint64_t)
#undef CAIRN_INSTANTIATE

}  // namespace cairn::bench
