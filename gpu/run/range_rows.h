#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn::gpu {

// Row ids in run order in device memory: that of position p is rows[p * stride], or, where entries
// are of different sizes, rows[at[p] * stride]. The stride is 1 for a column of its own, more where
// a row id is a word of a larger entry.
struct RowColumn {
  const RowId* rows = nullptr;
  uint32_t stride = 1;  // in units of four bytes
  const uint32_t* at = nullptr;
};

// DeviceIndex::CopyRows for every structure that keeps row ids in run order: copies those of range
// i, the offsets[i + 1] - offsets[i] positions from begin[i] on, to out[offsets[i]] and after,
// ascending or in reverse. Requires offsets[0] = 0 and 0 < offsets[queries] <= rows, or no row:
// what is enqueued is sized by `rows`.
//
// Work is divided by ranges and rows together, so that one range with most of the rows, or millions
// without any, spread over the device like any others.
absl::Status CopyRowsFromColumn(const RowColumn& column, const Position* begin,
                                const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                                RowId* out, cudaStream_t stream);

}  // namespace cairn::gpu
