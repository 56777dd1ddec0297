// What stands in for this folder in a build without CUDA.

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/gpu_factory.h"

namespace cairn {
namespace {

constexpr char kNoCuda[] = "no CUDA device: this build is without CUDA";

absl::Status Unavailable(std::string_view factory) {
  return absl::UnavailableError(absl::StrFormat("ordered index '%s': %s", factory, kNoCuda));
}

}  // namespace

absl::StatusOr<std::vector<Device>> Devices() {
  return absl::UnavailableError(kNoCuda);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory,
                                                             const SortedRun&, int) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<DeviceIndex>> MakeDeviceIndex(std::string_view factory, DeviceKeys,
                                                             const RowId*, DeviceStream) {
  return Unavailable(factory);
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> gpu::MakeGpuIndex(FactoryString factory, SortedRun) {
  return Unavailable(factory.text);
}

}  // namespace cairn
