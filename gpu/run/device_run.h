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

// A SortedRun in device memory, columns apart: what every structure is built from. Key is uint32_t
// or uint64_t.
template <typename Key>
struct DeviceRun {
  DeviceBuffer<Key> keys;
  DeviceBuffer<RowId> row_ids;
  // Where they have been surveyed already.
  std::optional<KeySurvey<Key>> survey;

  size_t size() const { return keys.size(); }
};

// Copies a run, of Key's kind, to the current device, and surveys it. Waits. DataLoss where the
// entries are not in order (CheckEntries).
template <typename Key>
absl::StatusOr<DeviceRun<Key>> UploadRun(const SortedRun& run, cudaStream_t stream);

// Sorts entries in device memory, which are left as they are, by (key, row id). Takes twice the
// entries' bytes besides them; three times, and three times as long, where rows of a key are not
// given in ascending order. Waits. InvalidArgument beyond kMaxEntries, and for a row id of kNoRow.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> SortToRun(const Key* keys, const RowId* row_ids, size_t size,
                                         cudaStream_t stream);

// The same, enqueued on `stream`, and not surveyed: for structures that any entries suit. Row ids
// are not looked at; where those of each key are promised to ascend as they are given, one sort
// does.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> EnqueueSort(const Key* keys, const RowId* row_ids, size_t size,
                                           bool rows_ascend, cudaStream_t stream);

}  // namespace cairn::gpu
