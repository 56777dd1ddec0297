#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn::gpu {

// A process can use only devices with ordinals below this.
inline constexpr int kMaxDevices = 64;

// OK if a build for the architectures `built_for` (900 is compute capability 9.0) runs on a device
// of this capability. Otherwise Unavailable, naming both. The kernels require at least 8.0. Newer
// devices run code for older ones.
absl::Status CheckCapability(std::string_view name, int major, int minor,
                             absl::Span<const int> built_for);

// OK if ListDevices has a device with this ordinal, otherwise Unavailable.
absl::Status CheckUsableDevice(int device);

// The device of the stream, or the current device for the default stream.
absl::StatusOr<int> DeviceOfStream(cudaStream_t stream);

}  // namespace cairn::gpu
