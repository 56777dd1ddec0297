#pragma once

#include <cub/device/device_scan.cuh>

#include "absl/status/status.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// output[i] = input[0] + … + input[i] under `add`, for iterators that are readable and writable on
// the device. `input` and `output` may be the same. Enqueued on `stream`; uses a few kilobytes of
// scratch memory.
template <typename Input, typename Output, typename Add>
absl::Status InclusiveScan(Input input, Output output, size_t size, Add add, cudaStream_t stream) {
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUB_FAILS(
      cub::DeviceScan::InclusiveScan(nullptr, bytes, input, output, add, size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<char> scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUB_FAILS(
      cub::DeviceScan::InclusiveScan(scratch.data(), bytes, input, output, add, size, stream));
  return absl::OkStatus();
}

// Copies one value from device memory; waits.
template <typename T>
absl::StatusOr<T> ReadBack(const T* value, cudaStream_t stream) {
  T read;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&read, value, sizeof(T), cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return read;
}

}  // namespace cairn::gpu
