#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn::gpu {

// Row ids in run order in device memory. The row id at position p is rows[p * stride], or, if
// entries have different sizes, rows[at[p] * stride]. The stride is 1 for a separate column, and
// more if row ids are words of larger entries.
struct RowColumn {
  const RowId* rows = nullptr;
  uint32_t stride = 1;  // in units of four bytes
  const uint32_t* at = nullptr;
};

// DeviceIndex::CopyRows for all structures that keep row ids in run order. Copies the row ids of
// range i to out[offsets[i]] and after, ascending or in reverse. The range has the offsets[i + 1] -
// offsets[i] positions from begin[i] on. Requires offsets[0] = 0 and offsets[queries] <= rows;
// `rows` determines the size of the enqueued work.
//
// Work is divided by ranges and rows together. So one range with most of the rows, or millions of
// empty ranges, are spread evenly over the device.
absl::Status CopyRowsFromColumn(const RowColumn& column, const Position* begin,
                                const uint64_t* offsets, size_t queries, uint64_t rows, Order order,
                                RowId* out, cudaStream_t stream);

}  // namespace cairn::gpu
