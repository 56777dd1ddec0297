#include "gpu/device.h"

#include <cuda_runtime.h>

namespace cairn::gpu {

absl::StatusOr<std::vector<Device>> Devices() {
  int count = 0;
  if (cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    return absl::UnavailableError(
        std::string("no CUDA device: ") +
        (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error)));
  }
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      return absl::UnavailableError("CUDA device " + std::to_string(i) + ": " +
                                    cudaGetErrorString(error));
    }
    devices[i] = {i, properties.name, properties.totalGlobalMem};
  }
  return devices;
}

}  // namespace cairn::gpu
