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
  DeviceBuffer<uint32_t> narrow_keys;  // sorted, of one of these two
  DeviceBuffer<uint64_t> wide_keys;
  DeviceBuffer<RowId> rows;  // by position, those without a key behind the others
  DeviceBuffer<Position> positions;
  DeviceBuffer<uint4> codes;
  KeySample sample;

  WhereColumnView view() const { return {codes.data(), positions.data(), rows.data()}; }
  WhereKeysView keys() const;
  uint64_t bytes() const;
  void SetStream(cudaStream_t stream);
};

// Makes a column of a run's entries, over `rows` rows, at least one. Waits. InvalidArgument for a
// row that is not among them, or has several entries; messages name column `number`.
template <typename Key>
absl::StatusOr<WhereColumn> MakeWhereColumn(DeviceRun<Key> run, uint64_t rows, size_t number,
                                            cudaStream_t stream);

// rows[i] = i. Enqueued on `stream`.
absl::Status NumberRows(RowId* rows, size_t size, cudaStream_t stream);

}  // namespace cairn::gpu
