#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/injected_failure.h"

namespace cairn::gpu {

// A kernel's grid, threads per block, and dynamic shared memory in bytes.
struct LaunchShape {
  dim3 blocks;
  int threads = 0;
  size_t shared_bytes = 0;
};

// The shape of kernels that do little work per element and have no tuning parameters: enough
// threads to fill any device, in a grid-stride loop (ForEachIndex).
inline constexpr int kSimpleThreads = 256;
inline int SimpleBlocks(size_t elements) {
  constexpr size_t kMax = 4096;
  return static_cast<int>(
      std::max<size_t>(1, std::min(kMax, (elements + kSimpleThreads - 1) / kSimpleThreads)));
}
inline LaunchShape SimpleShape(size_t elements) {
  return {static_cast<unsigned>(SimpleBlocks(elements)), kSimpleThreads};
}

#ifdef __CUDACC__
// Enqueues a kernel. Returns the launch's own error. An error that another call of the thread,
// possibly the caller's, has left is neither returned nor cleared.
template <typename... Parameters, typename... Arguments>
cudaError_t LaunchKernel(const LaunchShape& shape, cudaStream_t stream,
                         void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (const int injected = InjectedLaunchError(); injected != 0) {
    return static_cast<cudaError_t>(injected);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.blocks;
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// Calls body(i) for every i < size, each in some thread of the grid.
template <typename Body>
__device__ inline void ForEachIndex(size_t size, Body body) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += stride) body(i);
}
#endif

}  // namespace cairn::gpu

// Enqueues a kernel and returns if that fails. Arguments: its name, then LaunchKernel's arguments.
#define CAIRN_RETURN_IF_LAUNCH_FAILS(name, ...)                                        \
  do {                                                                                 \
    if (const cudaError_t cairn_error = ::cairn::gpu::LaunchKernel(__VA_ARGS__);       \
        cairn_error != cudaSuccess) {                                                  \
      return ::cairn::gpu::CudaStatus(cairn_error, name "<<<>>>", __FILE__, __LINE__); \
    }                                                                                  \
  } while (false)
