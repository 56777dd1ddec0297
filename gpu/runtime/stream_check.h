#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "cairn/device.h"

namespace cairn::gpu {

// FailedPrecondition if the stream is being captured. `doing`, for example "building", describes
// the operation on `subject`, which must wait for the stream; captured work never completes. Most
// other calls on a stream that is being captured would invalidate the capture.
absl::Status CheckNotCapturing(std::string_view subject, std::string_view doing,
                               DeviceStream stream);

}  // namespace cairn::gpu
