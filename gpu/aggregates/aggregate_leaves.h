#pragma once

#include <cuda_runtime.h>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/layout/aggregate_leaf.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/runtime/device_memory.h"
#include "index/layout/packed_leaves.h"

namespace cairn::gpu {

// The content of leaves, in device memory. Values have the type of the kind, one per distinct key.
// Arrays that the kind does not use are null.
template <typename Key>
struct LeafContents {
  const Key* keys = nullptr;
  const void* values = nullptr;  // AggregateValue
  const void* sums = nullptr;    // AggregateSum, of all values before each key
  const void* before = nullptr;  // AggregateValue, by primary leaf
  const void* behind = nullptr;
};

// Fills the leaves of a cut (gpu/layout/aggregate_leaf.h).
template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillAggregateLeaves(AggregateKind kind, const LeafCut& cut,
                                                       const LeafContents<Key>& contents,
                                                       cudaStream_t stream);

}  // namespace cairn::gpu
