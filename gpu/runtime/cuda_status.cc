#include "gpu/runtime/cuda_status.h"

#include <string>

#include "absl/strings/str_format.h"

namespace cairn::gpu {
namespace {

// Whether the error is an exception of the hardware or of any kernel of the process. CUDA returns
// it from all later calls, and the content of device memory is lost.
bool IsDeviceLost(cudaError_t error) {
  switch (error) {
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

// Whether there is no usable device.
bool IsWithoutDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorStartupFailure:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
    case cudaErrorDeviceUninitialized:
      return true;
    default:
      return false;
  }
}

// Whether the build contains no code for this device or driver.
bool IsWithoutCode(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorSoftwareValidityNotEstablished:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, std::string_view call, const char* file, int line) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Clears the error; if it does not break the context, the next launch would otherwise report it
  // again.
  (void)cudaGetLastError();
  std::string_view base = file;
  if (const size_t folder = base.rfind("/gpu/"); folder != base.npos)
    base.remove_prefix(folder + 1);
  const std::string message = absl::StrFormat("%s at %s:%d: %s (%s)", call, base, line,
                                              cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  if (error == cudaErrorNotSupported) return absl::UnimplementedError(message);
  if (IsDeviceLost(error)) return absl::UnavailableError(message + "; the device is lost");
  if (IsWithoutDevice(error)) return absl::UnavailableError(message);
  if (IsWithoutCode(error)) {
    return absl::UnavailableError(message + "; this build has no code for the device");
  }
  return absl::InternalError(message);
}

absl::Status CheckNoEarlierError(std::string_view call) {
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "before %s: an earlier CUDA call of this thread, none of Cairn's, has failed: %s (%s); %s",
      call.substr(0, call.find('(')), cudaGetErrorString(error), cudaGetErrorName(error),
      IsDeviceLost(error) ? "the device is lost" : "cudaGetLastError clears its error"));
}

}  // namespace cairn::gpu
