#include "gpu/device.h"

namespace cairn::gpu {

absl::StatusOr<std::vector<Device>> Devices() {
  return absl::UnavailableError("no CUDA device: this build is without CUDA");
}

}  // namespace cairn::gpu
