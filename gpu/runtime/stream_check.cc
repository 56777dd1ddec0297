#include "gpu/runtime/stream_check.h"

#include <cuda_runtime.h>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"

namespace cairn::gpu {

absl::Status CheckNotCapturing(std::string_view subject, std::string_view doing,
                               DeviceStream stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
  if (error == cudaErrorStreamCaptureImplicit) {
    // The default stream, which waits for a stream that is being captured.
    (void)cudaGetLastError();
    capture = cudaStreamCaptureStatusActive;
  } else {
    CAIRN_RETURN_IF_CUDA_FAILS(error);
  }
  if (capture == cudaStreamCaptureStatusNone) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: the stream is being captured, but %s must wait for it", subject, doing));
}

}  // namespace cairn::gpu
