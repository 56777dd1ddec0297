#pragma once

#include <cuda_runtime.h>

#include "absl/status/statusor.h"
#include "cairn/sorted_run.h"
#include "gpu/run/device_run.h"
#include "gpu/text/text_code.h"

namespace cairn::gpu {

// UploadRun for the numbers that the keys of a run of byte strings have in their code, computed on
// up to `threads` threads. Waits. Errors: DataLoss if the entries are not sorted, or if the code
// does not cover a key. Throws std::bad_alloc.
template <typename Key>
absl::StatusOr<DeviceRun<Key>> UploadNumbers(const SortedRun& run, const TextCode& code,
                                             int threads, cudaStream_t stream);

}  // namespace cairn::gpu
