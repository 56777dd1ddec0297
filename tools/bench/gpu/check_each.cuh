#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench {

// Counts the wrong answers of a batch in device memory.
struct Wrong {
  __device__ void Count(uint64_t i) {
    atomicAdd(&count, 1ull);
    atomicMin(&first, static_cast<unsigned long long>(i));
  }

  unsigned long long count;
  unsigned long long first;  // the first wrong one
};

// Counts every i < size for which is_wrong(i) is true.
template <typename IsWrong>
__global__ void CountWrong(size_t size, IsWrong is_wrong, Wrong* wrong) {
  gpu::ForEachIndex(size, [=](size_t i) {
    if (is_wrong(i)) wrong->Count(i);
  });
}

// Runs enqueue(Wrong*), which counts wrong ones of `size` answers. Internal if there are any.
// Waits.
template <typename Enqueue>
absl::Status Check(size_t size, cudaStream_t stream, Enqueue enqueue) {
  ASSIGN_OR_RETURN(const auto wrong, gpu::DeviceBuffer<Wrong>::Allocate(1, stream));
  Wrong found{0, ~0ull};
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(wrong.data(), &found, sizeof found, cudaMemcpyHostToDevice, stream));
  enqueue(wrong.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("CountWrong");
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&found, wrong.data(), sizeof found, cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  if (found.count == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("wrong answers: %d of %d; the first is number %d",
                                             found.count, size, found.first));
}

// Internal if is_wrong(i), which is called on the device, is true for any i < size. Waits.
template <typename IsWrong>
absl::Status CheckEach(size_t size, cudaStream_t stream, IsWrong is_wrong) {
  return Check(size, stream, [&](Wrong* wrong) {
    CountWrong<<<gpu::SimpleBlocks(size), gpu::kSimpleThreads, 0, stream>>>(size, is_wrong, wrong);
  });
}

}  // namespace cairn::bench
