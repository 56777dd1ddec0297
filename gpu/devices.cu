#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "cairn/device.h"
#include "gpu/cuda_status.h"

namespace cairn {

absl::StatusOr<std::vector<Device>> Devices() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return absl::UnavailableError(
        std::string("no CUDA device: ") +
        (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error)));
  }
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      (void)cudaGetLastError();
      return absl::UnavailableError("CUDA device " + std::to_string(i) + ": " +
                                    cudaGetErrorString(error));
    }
    devices[i] = {i, properties.name, properties.totalGlobalMem};
  }
  return devices;
}

}  // namespace cairn
