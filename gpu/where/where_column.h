#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/where/key_sample.h"
#include "gpu/where/where_ranges.h"
#include "gpu/where/where_view.h"

namespace cairn::gpu {

// A column of a group in device memory. Movable.
struct WhereColumn {
  DeviceBuffer<uint32_t> narrow_keys;  // sorted; either these keys or wide_keys are used
  DeviceBuffer<uint64_t> wide_keys;
  DeviceBuffer<RowId> rows;  // by position; rows without a key follow the others
  DeviceBuffer<Position> positions;
  DeviceBuffer<uint4> codes;
  KeySample sample;

  WhereColumnView view() const { return {codes.data(), positions.data(), rows.data()}; }
  WhereKeysView keys() const;
  uint64_t bytes() const;
  void SetStream(cudaStream_t stream);
};

// Makes a column over `rows` >= 1 rows from the entries of a run. Waits. Errors: InvalidArgument
// for a row that does not exist or has several entries; messages name column `number`.
template <typename Key>
absl::StatusOr<WhereColumn> MakeWhereColumn(DeviceRun<Key> run, uint64_t rows, size_t number,
                                            cudaStream_t stream);

}  // namespace cairn::gpu
