#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cairn::gpu {

// The shape of kernels that do a little for each of many elements, which no parameter of theirs
// makes faster: enough threads to fill any device, in a grid-stride loop (ForEachIndex).
inline constexpr int kSimpleThreads = 256;
inline int SimpleBlocks(size_t elements) {
  constexpr size_t kMost = 4096;
  return static_cast<int>(
      std::max<size_t>(1, std::min(kMost, (elements + kSimpleThreads - 1) / kSimpleThreads)));
}

#ifdef __CUDACC__
// Calls body(i) for every i < size in some thread of the grid.
template <typename Body>
__device__ inline void ForEachIndex(size_t size, Body body) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += stride) body(i);
}
#endif

}  // namespace cairn::gpu
