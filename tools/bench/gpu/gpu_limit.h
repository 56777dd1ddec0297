#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

// Limits of a GPU's memory, to compare the structures with. Each is the median of device_bench.h.
// It is measured once per process for its arguments, synchronously.
namespace cairn::bench {

// Seconds that `queries` independent random reads of 64-byte lines in `bytes` bytes of memory take.
// Four lanes read each line; a query of 4 bytes is also read and a result of 4 bytes written: the
// bound of every search over this much memory. The best of the ways that Limit/gpu/random_read_64B
// lists. `bytes` is rounded down to MiB, and at least one.
absl::StatusOr<double> RandomReadSeconds(size_t bytes, size_t queries, cudaStream_t stream);

// Seconds that cudaMemcpy takes from one array of kCopiedBytes to another: the bound of
// streaming through memory, counting reads and writes.
inline constexpr size_t kCopiedBytes = size_t{4} << 30;
absl::StatusOr<double> CopySeconds(cudaStream_t stream);

// Seconds that cub::DeviceRadixSort::SortPairs takes for 2^log2_n random pairs of a key and a row
// id, from unsorted to sorted arrays: the bound of every build.
template <typename Key>
absl::StatusOr<double> SortPairsSeconds(int log2_n, cudaStream_t stream);

}  // namespace cairn::bench
