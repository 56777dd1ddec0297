#include "gpu/runtime/devices.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace gpu {

absl::Status CheckCapability(std::string_view name, int major, int minor,
                             absl::Span<const int> built_for) {
  constexpr int kMin = 800;  // required by __reduce_add_sync (key_survey.cu)
  int least = built_for.empty() ? kMin : *std::min_element(built_for.begin(), built_for.end());
  least = std::max(least, kMin);
  if (100 * major + 10 * minor >= least) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "%s has compute capability %d.%d, but this build of Cairn requires %d.%d or newer", name,
      major, minor, least / 100, least / 10 % 10));
}

absl::Status CheckUsableDevice(int device) {
  ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices());
  if (std::ranges::any_of(devices, [&](const Device& d) { return d.ordinal == device; })) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrFormat("no usable CUDA device %d; found %d", device, devices.size()));
}

absl::StatusOr<int> DeviceOfStream(cudaStream_t stream) {
  int device = 0;
#if CUDART_VERSION >= 12080
  if (stream != nullptr) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamGetDevice(stream, &device));
    return device;
  }
#endif
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  return device;
}

}  // namespace gpu

absl::StatusOr<std::vector<Device>> ListDevices() {
  constexpr int kBuiltFor[] = {__CUDA_ARCH_LIST__};
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return absl::UnavailableError(
        std::string("no CUDA device: ") +
        (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error)));
  }
  std::vector<Device> devices;
  absl::Status unusable;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      (void)cudaGetLastError();
      return absl::UnavailableError("CUDA device " + std::to_string(i) + ": " +
                                    cudaGetErrorString(error));
    }
    absl::Status usable =
        gpu::CheckCapability(absl::StrFormat("CUDA device %d (%s)", i, properties.name),
                             properties.major, properties.minor, kBuiltFor);
    if (usable.ok()) {
      devices.push_back({i, properties.name, properties.totalGlobalMem});
    } else {
      unusable.Update(usable);
    }
  }
  if (devices.empty()) return unusable;
  return devices;
}

}  // namespace cairn
