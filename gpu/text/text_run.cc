#include "gpu/text/text_run.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/pinned_memory.h"
#include "gpu/runtime/stream.h"
#include "index/layout/wide_key.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr size_t kNumbersATask = size_t{1} << 14;
// Numbers in each half of the staging buffer; one half is filled while the other is copied.
constexpr size_t kStagedNumbers = size_t{1} << 20;

}  // namespace

template <typename Key>
absl::StatusOr<DeviceRun<Key>> UploadNumbers(const SortedRun& run, const TextCode& code,
                                             int threads, cudaStream_t stream) {
  DeviceRun<Key> uploaded;
  RETURN_IF_ERROR(Resize(&uploaded.keys, run.size(), stream));
  RETURN_IF_ERROR(Resize(&uploaded.row_ids, run.size(), stream));
  if (run.empty()) return uploaded;
  const size_t half = std::min(kStagedNumbers, run.size());
  ASSIGN_OR_RETURN(const PinnedMemory pinned, PinnedMemory::Allocate(2 * half * sizeof(Key)));
  const WaitsAtEnd waits(stream);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(uploaded.row_ids.data(), run.row_ids().data(),
                                             uploaded.row_ids.bytes(), cudaMemcpyHostToDevice,
                                             stream));
  std::atomic<bool> exact = true;
  bool second = false;
  for (size_t first = 0; first < run.size(); first += half, second = !second) {
    Key* const staged = reinterpret_cast<Key*>(pinned.data()) + (second ? half : 0);
    const size_t count = std::min(half, run.size() - first);
    ParallelFor(threads, (count + kNumbersATask - 1) / kNumbersATask, [&](size_t task) {
      const size_t begin = task * kNumbersATask, size = std::min(kNumbersATask, count - begin);
      if (!code.Number(run.bytes(), first + begin, absl::MakeSpan(staged + begin, size))) {
        exact = false;
      }
    });
    // The copy from the other half is then complete, and it can be overwritten.
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(
        uploaded.keys.data() + first, staged, count * sizeof(Key), cudaMemcpyHostToDevice, stream));
  }
  // A run guarantees its content and order, but its memory may be that of a file, which other
  // processes can change.
  if (!exact) return absl::DataLossError("the keys of a run changed while they were read");
  ASSIGN_OR_RETURN(const KeySurvey<Key> survey,
                   SurveyKeys(uploaded.keys.data(), uploaded.row_ids.data(), run.size(), stream));
  RETURN_IF_ERROR(CheckEntries(survey));
  uploaded.survey = survey;
  return uploaded;
}

template absl::StatusOr<DeviceRun<uint64_t>> UploadNumbers(const SortedRun&, const TextCode&, int,
                                                           cudaStream_t);
template absl::StatusOr<DeviceRun<WideKey>> UploadNumbers(const SortedRun&, const TextCode&, int,
                                                          cudaStream_t);

}  // namespace cairn::gpu
