#pragma once

#include "gpu/runtime/cuda_status.h"

// Returns from the calling function if an earlier kernel launch failed, or an earlier CUDA call
// whose error was not read. `kernel` is the kernel's name. For programs that make all CUDA calls
// themselves.
#define CAIRN_RETURN_IF_LAUNCH_FAILED(kernel)                                             \
  do {                                                                                    \
    if (const cudaError_t cairn_error = cudaGetLastError(); cairn_error != cudaSuccess) { \
      return ::cairn::gpu::CudaStatus(cairn_error, kernel "<<<>>>", __FILE__, __LINE__);  \
    }                                                                                     \
  } while (false)
