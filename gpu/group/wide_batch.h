#pragma once

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "cairn/device/group.h"
#include "gpu/group/group_state.h"

namespace cairn::gpu {

// Answers a batch in the memory of `device`, one of the group's, behind the work that `stream` has
// now, a stream of that device. Waits. InvalidArgument and Unimplemented as DeviceGroup::Execute.
// Ranges are two searches for points; for kCount the positions of the first take 8 bytes a query of
// 2^25, or of a chunk where that has more.
absl::Status AnswerWide(GroupState& group, const WideDeviceBatch& batch, int device,
                        cudaStream_t stream);

}  // namespace cairn::gpu
