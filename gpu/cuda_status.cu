#include "gpu/cuda_status.h"

#include <string>

#include "absl/strings/str_format.h"

namespace cairn::gpu {

absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line) {
  if (error == cudaSuccess) return absl::OkStatus();
  // An error that does not break the context would be reported again by the next launch.
  (void)cudaGetLastError();
  std::string_view base = file;
  if (const size_t folder = base.rfind("/gpu/"); folder != base.npos)
    base.remove_prefix(folder + 1);
  const std::string message = absl::StrFormat("%s at %s:%d: %s (%s)", call, base, line,
                                              cudaGetErrorString(error), cudaGetErrorName(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorInvalidDevice:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace cairn::gpu
