#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

namespace cairn::gpu {

// Bytes of shared memory that a block of the current device may take when its kernel asks for them:
// 227 KB on an H200, 99 KB on devices of compute capability 8.6 and 8.9, 64 KB on those of 7.5.
absl::StatusOr<size_t> MostSharedBytes();

// For tests: no device gives a block more than `bytes`; 0 ends that.
void LimitSharedBytes(size_t bytes);

}  // namespace cairn::gpu
