#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "gpu/packed/leaf_packing.h"

namespace cairn::gpu {

// CutLeaves for leaves of another layout, which hold up to `capacity` entries, at most 31, and one
// less where they are continued.
template <typename Key>
absl::StatusOr<LeafCut> CutLeavesOf(int capacity, const Key* keys, size_t size, int bits,
                                    const KeyMarks& marks, bool repeat, cudaStream_t stream);

}  // namespace cairn::gpu
