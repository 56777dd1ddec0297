#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "gpu/device_memory.h"
#include "gpu/leaf_packing.h"

namespace cairn::gpu {

// The separators of a cut's primary leaves, one less than leaves: leaf i answers for the keys in
// (separator[i - 1], separator[i]]. Each is in the middle of the keys that it may be, since a
// directory that keeps separators inexactly is in doubt about the keys next to them.
template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> ChooseSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                   cudaStream_t stream);

}  // namespace cairn::gpu
