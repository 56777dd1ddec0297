#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "cairn/device.h"

namespace cairn::gpu {

// FailedPrecondition where the stream is being captured, since what is done, "building" or so, to
// `subject` waits for the stream, which work that is only being captured never lets end. Most other
// calls about a stream that is being captured would spoil the capture.
absl::Status CheckNotCapturing(std::string_view subject, std::string_view doing,
                               DeviceStream stream);

}  // namespace cairn::gpu
