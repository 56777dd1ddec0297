#include "gpu/cuda_status.h"

#include <string>

#include "absl/strings/str_format.h"

namespace cairn::gpu {
namespace {

// Whether there is no device to work on, or no longer. After an exception of the hardware or of any
// kernel of the process, CUDA reports it for all later calls: what was in device memory is gone.
bool IsWithoutDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorStartupFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line) {
  if (error == cudaSuccess) return absl::OkStatus();
  // An error that does not break the context would be reported again by the next launch.
  (void)cudaGetLastError();
  std::string_view base = file;
  if (const size_t folder = base.rfind("/gpu/"); folder != base.npos)
    base.remove_prefix(folder + 1);
  const std::string message = absl::StrFormat("%s at %s:%d: %s (%s)", call, base, line,
                                              cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  if (IsWithoutDevice(error)) return absl::UnavailableError(message);
  return absl::InternalError(message);
}

}  // namespace cairn::gpu
