#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "absl/status/status.h"

namespace cairn::gpu {

// A CUDA call's outcome as a status: OK; ResourceExhausted for memory; Unavailable where there is
// no device or driver, and where the device is lost, which every later call of the process meets
// too; else Internal. The message names the call and its place, and CUDA's words.
absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line);

}  // namespace cairn::gpu

// Returns from a function that gives a Status or StatusOr if the CUDA call fails.
#define CAIRN_RETURN_IF_CUDA_FAILS(call)                                       \
  do {                                                                         \
    if (const cudaError_t cairn_error = (call); cairn_error != cudaSuccess) {  \
      return ::cairn::gpu::CudaStatus(cairn_error, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (false)

// Returns if the kernel launch before it failed; `kernel` is its name.
#define CAIRN_RETURN_IF_LAUNCH_FAILED(kernel)                                             \
  do {                                                                                    \
    if (const cudaError_t cairn_error = cudaGetLastError(); cairn_error != cudaSuccess) { \
      return ::cairn::gpu::CudaStatus(cairn_error, kernel "<<<>>>", __FILE__, __LINE__);  \
    }                                                                                     \
  } while (false)
