#pragma once

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn::gpu {

// A process uses devices with lower ordinals alone.
inline constexpr int kMaxDevices = 64;

// OK if a build for the architectures `built_for` (900 is compute capability 9.0) can run on a
// device of this capability; Unavailable, naming both, if not: the kernels themselves need 8.0.
// Newer devices run what older ones do.
absl::Status CheckCapability(std::string_view name, int major, int minor,
                             absl::Span<const int> built_for);

// The device that the stream's work runs on; the current one's for the default stream.
absl::StatusOr<int> DeviceOfStream(cudaStream_t stream);

}  // namespace cairn::gpu
