#include "gpu/run/device_run.h"

#include <cub/device/device_radix_sort.cuh>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Stable sort of pairs, out of place.
template <typename Key, typename Value>
absl::Status SortPairs(const Key* keys, const Value* values, size_t size, Key* sorted_keys,
                       Value* sorted_values, cudaStream_t stream) {
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUB_FAILS(
      cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys, values, sorted_values,
                                      size, 0, static_cast<int>(sizeof(Key) * 8), stream));
  ASSIGN_OR_RETURN(DeviceBuffer<char> scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUB_FAILS(cub::DeviceRadixSort::SortPairs(
      scratch.data(), bytes, keys, sorted_keys, values, sorted_values, size, 0,
      static_cast<int>(sizeof(Key) * 8), stream));
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<DeviceRun<Key>> AllocateRun(size_t size, cudaStream_t stream) {
  DeviceRun<Key> run;
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(size, stream));
  run.keys = std::move(keys);
  run.row_ids = std::move(row_ids);
  return run;
}

absl::Status CheckSize(size_t size) {
  if (size <= kMaxEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("got %d entries, more than the %d that a run supports", size, kMaxEntries));
}

// Sorts by row id first, then, stably, by key.
template <typename Key>
absl::Status SortByKeyAndRow(const Key* keys, const RowId* row_ids, size_t size,
                             const DeviceRun<Key>& run, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const DeviceRun<Key> by_row, AllocateRun<Key>(size, stream));
  RETURN_IF_ERROR(
      SortPairs(row_ids, keys, size, by_row.row_ids.data(), by_row.keys.data(), stream));
  return SortPairs(by_row.keys.data(), by_row.row_ids.data(), size, run.keys.data(),
                   run.row_ids.data(), stream);
}

}  // namespace

template <typename Key>
absl::StatusOr<DeviceRun<Key>> UploadRun(const SortedRun& run, cudaStream_t stream) {
  absl::StatusOr<DeviceRun<Key>> uploaded = AllocateRun<Key>(run.size(), stream);
  if (!uploaded.ok() || run.empty()) return uploaded;
  const void* keys = nullptr;
  if constexpr (std::is_same_v<Key, uint32_t>) {
    keys = run.u32().data();
  } else {
    keys = run.u64().data();
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(uploaded->keys.data(), keys, uploaded->keys.bytes(),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(uploaded->row_ids.data(), run.row_ids().data(),
                                             uploaded->row_ids.bytes(), cudaMemcpyHostToDevice,
                                             stream));
  ASSIGN_OR_RETURN(const KeySurvey<Key> survey,
                   SurveyKeys(uploaded->keys.data(), uploaded->row_ids.data(), run.size(), stream));
  // A run guarantees its order, but its memory may be that of a file, which other processes can
  // change.
  RETURN_IF_ERROR(CheckEntries(survey));
  uploaded->survey = survey;
  return uploaded;
}

template <typename Key>
absl::StatusOr<DeviceRun<Key>> EnqueueSort(const Key* keys, const RowId* row_ids, size_t size,
                                           bool rows_ascend, cudaStream_t stream) {
  RETURN_IF_ERROR(CheckSize(size));
  absl::StatusOr<DeviceRun<Key>> run = AllocateRun<Key>(size, stream);
  if (!run.ok() || size == 0) return run;
  RETURN_IF_ERROR(
      rows_ascend ? SortPairs(keys, row_ids, size, run->keys.data(), run->row_ids.data(), stream)
                  : SortByKeyAndRow(keys, row_ids, size, *run, stream));
  return run;
}

template <typename Key>
absl::StatusOr<DeviceRun<Key>> SortToRun(const Key* keys, const RowId* row_ids, size_t size,
                                         cudaStream_t stream) {
  // The sort is stable, so if the row ids of each key ascended before, as is typical, they still
  // do.
  absl::StatusOr<DeviceRun<Key>> run = EnqueueSort(keys, row_ids, size, true, stream);
  if (!run.ok() || size == 0) return run;
  ASSIGN_OR_RETURN(const KeySurvey<Key> survey,
                   SurveyKeys(run->keys.data(), run->row_ids.data(), size, stream));
  run->survey = survey;
  if (survey.has_no_row) {
    return absl::InvalidArgumentError(absl::StrFormat("got row id %d, which is reserved", kNoRow));
  }
  if (survey.rows_ascend) return run;
  RETURN_IF_ERROR(SortByKeyAndRow(keys, row_ids, size, *run, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return run;
}

template absl::StatusOr<DeviceRun<uint32_t>> UploadRun(const SortedRun&, cudaStream_t);
template absl::StatusOr<DeviceRun<uint64_t>> UploadRun(const SortedRun&, cudaStream_t);
template absl::StatusOr<DeviceRun<uint32_t>> SortToRun(const uint32_t*, const RowId*, size_t,
                                                       cudaStream_t);
template absl::StatusOr<DeviceRun<uint64_t>> SortToRun(const uint64_t*, const RowId*, size_t,
                                                       cudaStream_t);
template absl::StatusOr<DeviceRun<uint32_t>> EnqueueSort(const uint32_t*, const RowId*, size_t,
                                                         bool, cudaStream_t);
template absl::StatusOr<DeviceRun<uint64_t>> EnqueueSort(const uint64_t*, const RowId*, size_t,
                                                         bool, cudaStream_t);

}  // namespace cairn::gpu
