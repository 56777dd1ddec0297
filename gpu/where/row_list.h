#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/types.h"

namespace cairn::gpu {

// From a bitmap of rows, a bit each, to their list: in device memory, enqueued on `stream`. A
// bitmap has whole tiles (kTileRows), TilesOf(rows) of them; bits behind the last row are 0.

// counts[i] = how many bits tile i has.
absl::Status CountTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* counts,
                        cudaStream_t stream);

// offsets[1 + i] is tile i's count, and becomes how many bits there are up to its end; offsets[0]
// becomes 0. Rows go to rows[0 …] in ascending order, but for those from rows[capacity] on; *total,
// unless it is null, becomes how many there are. Unavailable where an earlier error is left in the
// thread.
absl::Status ListTiles(const uint32_t* bitmap, uint64_t tiles, uint64_t* offsets, RowId* rows,
                       uint64_t capacity, uint64_t* total, cudaStream_t stream);

}  // namespace cairn::gpu
