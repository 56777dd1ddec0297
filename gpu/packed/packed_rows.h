#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/packed_search.h"
#include "gpu/runtime/device_memory.h"

// The row ids of positions, out of packed leaves.

namespace cairn::gpu {

// The leaf is known of every so manieth position: the fewer, the fewer leaves are looked at before
// the right one, at 4 bytes each.
inline constexpr size_t kLeafSample = 32;

// samples[i] is the primary leaf whose keys position i * kLeafSample is among; the last element is
// the last leaf.
absl::StatusOr<DeviceBuffer<uint32_t>> SampleLeaves(const LeafCut& cut, size_t size,
                                                    cudaStream_t stream);

// DeviceIndex::CopyRows, where there are rows, for leaves of distinct keys. Work is divided by
// ranges and rows together (range_items.cuh).
absl::Status CopyRowsFromLeaves(const PackedView& view, const uint32_t* samples,
                                const Position* begin, const uint64_t* offsets, size_t queries,
                                uint64_t rows, Order order, RowId* row_ids, cudaStream_t stream);

}  // namespace cairn::gpu
