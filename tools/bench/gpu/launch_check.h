#pragma once

#include "gpu/runtime/cuda_status.h"

// Returns if a kernel launch before it failed, or any call of CUDA whose error nobody took;
// `kernel` is its name. For programs whose calls are all their own.
#define CAIRN_RETURN_IF_LAUNCH_FAILED(kernel)                                             \
  do {                                                                                    \
    if (const cudaError_t cairn_error = cudaGetLastError(); cairn_error != cudaSuccess) { \
      return ::cairn::gpu::CudaStatus(cairn_error, kernel "<<<>>>", __FILE__, __LINE__);  \
    }                                                                                     \
  } while (false)
