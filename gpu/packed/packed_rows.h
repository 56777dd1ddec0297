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

// Reads the row ids at positions from packed leaves.

namespace cairn::gpu {

// The leaf is stored for every kLeafSample-th position. A smaller distance makes searches for the
// right leaf shorter, at 4 bytes per sample.
inline constexpr size_t kLeafSample = 32;

// samples[i] is the primary leaf that contains position i * kLeafSample; the last element is the
// last leaf.
absl::StatusOr<DeviceBuffer<uint32_t>> SampleLeaves(const LeafCut& cut, size_t size,
                                                    cudaStream_t stream);

// DeviceIndex::CopyRows for leaves of distinct keys, if there are rows. Work is divided by ranges
// and rows together (range_items.cuh).
absl::Status CopyRowsFromLeaves(const PackedView& view, const uint32_t* samples,
                                const Position* begin, const uint64_t* offsets, size_t queries,
                                uint64_t rows, Order order, RowId* row_ids, cudaStream_t stream);

}  // namespace cairn::gpu
