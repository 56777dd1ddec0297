#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn::gpu {

// A CUDA device that this process may use.
struct Device {
  int ordinal = 0;
  std::string name;
  size_t memory_bytes = 0;
};

// The usable devices, in CUDA's order. Unavailable, with the reason, where there is none: a build
// without CUDA, no driver, or no device.
absl::StatusOr<std::vector<Device>> Devices();

}  // namespace cairn::gpu
