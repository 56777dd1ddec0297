#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/types.h"

namespace cairn::gpu {

// Converts a bitmap of rows, one bit per row, to a list of rows, both in device memory. Enqueued on
// `stream`. A bitmap has whole tiles (kTileRows), TilesOf(rows) of them; bits past the last row
// must be 0.

// counts[i] = the number of bits set in tile i.
absl::Status CountTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* counts,
                        cudaStream_t stream);

// On entry, offsets[1 + i] is tile i's count. On return, it is the number of bits up to the tile's
// end, and offsets[0] is 0. Writes the first `capacity` rows, ascending, to `rows`. If `total` is
// not null, sets *total to the number of all rows. Errors: Unavailable if an earlier CUDA error is
// pending in this thread.
absl::Status ListTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* offsets, RowId* rows,
                       uint64_t capacity, uint64_t* total, cudaStream_t stream);

}  // namespace cairn::gpu
