#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// The row ids 0 … size - 1; requires size <= kMaxEntries. Enqueued on `stream`.
absl::StatusOr<DeviceBuffer<RowId>> RowNumbers(size_t size, cudaStream_t stream);

}  // namespace cairn::gpu
