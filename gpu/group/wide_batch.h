#pragma once

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "cairn/device/group.h"
#include "gpu/group/group.h"

namespace cairn::gpu {

// Executes a batch in the memory of `device`, a device of the group, after all work enqueued so far
// on `stream`, a stream of that device. Waits. Ranges are executed as two searches for points. For
// kCount, the first search's positions take 8 bytes per query, for 2^25 queries or a chunk,
// whichever is more. Errors: InvalidArgument and Unimplemented like DeviceGroup::Execute.
absl::Status AnswerWide(const Group& group, const WideDeviceBatch& batch, int device,
                        cudaStream_t stream);

}  // namespace cairn::gpu
