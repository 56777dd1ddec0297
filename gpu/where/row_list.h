#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Where a list of rows goes that is written in one pass, by blocks that each have the rows of a
// tile and learn from those before how many rows come first (row_list.cuh).
struct RowList {
  uint64_t* states;  // a word for each tile of kTileRows, 0 at first
  RowId* rows;       // in ascending order, but for those from rows[capacity] on
  uint64_t capacity;
  uint64_t* total;  // how many there are
};

// Memory for the states of a list over so many rows, cleared. Enqueued on `stream`.
absl::StatusOr<DeviceBuffer<uint64_t>> MakeListStates(uint64_t rows, cudaStream_t stream);

// Lists the bits of a bitmap of whole tiles (TilesOf(rows) of them), in which bits behind the last
// row are 0. Enqueued on `stream`.
absl::Status ListBitmap(const uint32_t* bitmap, uint64_t rows, const RowList& list,
                        cudaStream_t stream);

}  // namespace cairn::gpu
