#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "absl/status/status.h"

namespace cairn::gpu {

// The result of a CUDA call as a status: OK; ResourceExhausted if memory ran out; Unimplemented if
// the device or driver does not support the call; Unavailable if there is no device or driver, if
// the build has no code for them, or if the device is lost (every later call of the process then
// fails, too); otherwise Internal. The message names the call and its location, and includes CUDA's
// error text.
absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line);

// Unavailable if an earlier CUDA call of this thread, not made by this library, left an error. The
// error stays for its owner to clear. Used before calls whose own errors could not be distinguished
// from it.
absl::Status CheckNoEarlierError(std::string_view call);

// Clears cudaErrorNotReady, which is not a failure, if a query left it as the last error.
inline void ForgetNotReady() {
  if (cudaPeekAtLastError() == cudaErrorNotReady) (void)cudaGetLastError();
}

}  // namespace cairn::gpu

// Returns from a function that returns a Status or StatusOr if the CUDA call fails.
#define CAIRN_RETURN_IF_CUDA_FAILS(call)                                       \
  do {                                                                         \
    if (const cudaError_t cairn_error = (call); cairn_error != cudaSuccess) {  \
      return ::cairn::gpu::CudaStatus(cairn_error, #call, __FILE__, __LINE__); \
    }                                                                          \
  } while (false)

// The same for a call of CUB, which would return the thread's last error as its own.
#define CAIRN_RETURN_IF_CUB_FAILS(call)                                                           \
  do {                                                                                            \
    if (absl::Status cairn_status = ::cairn::gpu::CheckNoEarlierError(#call); !cairn_status.ok()) \
      return cairn_status;                                                                        \
    CAIRN_RETURN_IF_CUDA_FAILS(call);                                                             \
  } while (false)
