#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "absl/status/status.h"

namespace cairn::gpu {

// A CUDA call's outcome as a status: OK; ResourceExhausted for memory; Unimplemented for what the
// device or the driver does not offer; Unavailable where there is no device or driver, where the
// build holds no code that they can run, and where the device is lost, which every later call of
// the process meets too; else Internal. The message names the call and its place, and CUDA's words.
absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line);

// Unavailable where a call of the thread before this, none of the library's, has left an error
// behind, which stays for its owner to take. For calls whose own errors could not be told from it.
absl::Status CheckNoEarlierError(std::string_view call);

// Takes away cudaErrorNotReady, which is no failure, where a query has left it behind as one.
inline void ForgetNotReady() {
  if (cudaPeekAtLastError() == cudaErrorNotReady) (void)cudaGetLastError();
}

}  // namespace cairn::gpu

// Returns from a function that gives a Status or StatusOr if the CUDA call fails.
#define CAIRN_RETURN_IF_CUDA_FAILS(call)                                       \
  do {                                                                         \
    if (const cudaError_t cairn_error = (call); cairn_error != cudaSuccess) {  \
      return ::cairn::gpu::CudaStatus(cairn_error, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (false)

// The same for a call of CUB, which gives the thread's last error for its own.
#define CAIRN_RETURN_IF_CUB_FAILS(call)                                                           \
  do {                                                                                            \
    if (absl::Status cairn_status = ::cairn::gpu::CheckNoEarlierError(#call); !cairn_status.ok()) \
      return cairn_status;                                                                        \
    CAIRN_RETURN_IF_CUDA_FAILS(call);                                                             \
  } while (false)
