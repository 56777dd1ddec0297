#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device/join.h"
#include "cairn/types.h"

namespace cairn::gpu {

// One side of a join, in device memory: ascending keys; `row_ids` may be null (DeviceEntries).
template <typename Key>
struct JoinSide {
  const Key* keys;
  const RowId* row_ids;
  uint32_t size;
};

// JoinDevice and CountDeviceJoin for two non-empty sides, enqueued on the current device.
template <typename Key>
absl::Status EnqueueJoin(const JoinSide<Key>& left, const JoinSide<Key>& right,
                         const DevicePairs& pairs, cudaStream_t stream);
template <typename Key>
absl::Status EnqueueCountJoin(const JoinSide<Key>& left, const JoinSide<Key>& right,
                              uint64_t* total, cudaStream_t stream);

}  // namespace cairn::gpu
