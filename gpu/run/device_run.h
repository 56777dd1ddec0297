#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "gpu/run/key_survey.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// A SortedRun in device memory, in separate columns; the input of all structures. Key is uint32_t
// or uint64_t.
template <typename Key>
struct DeviceRun {
  DeviceBuffer<Key> keys;
  DeviceBuffer<RowId> row_ids;
  // Set if the run has been surveyed.
  std::optional<KeySurvey<Key>> survey;

  size_t size() const { return keys.size(); }
};

// Copies a run with keys of type Key to the current device and surveys it. Waits. Errors: DataLoss
// if the entries are not sorted (CheckEntries).
template <typename Key>
absl::StatusOr<DeviceRun<Key>> UploadRun(const SortedRun& run, cudaStream_t stream);

// Sorts entries in device memory by (key, row id), out of place. Needs twice the entries' bytes in
// addition to the input. If the row ids of a key do not ascend in the input, needs three times the
// bytes and three times as long. Waits. Errors: InvalidArgument for more than kMaxEntries entries
// or a row id of kNoRow.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> SortToRun(const Key* keys, const RowId* row_ids, size_t size,
                                         cudaStream_t stream);

// The same, enqueued on `stream` and without a survey, for structures that do not need one. Row ids
// are not checked. With `rows_ascend`, the caller guarantees that the row ids of each key ascend in
// the input, so that one sort is enough.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> EnqueueSort(const Key* keys, const RowId* row_ids, size_t size,
                                           bool rows_ascend, cudaStream_t stream);

}  // namespace cairn::gpu
