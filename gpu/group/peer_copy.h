#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/status.h"
#include "gpu/runtime/cuda_status.h"

namespace cairn::gpu {

// Size of a part of a memory block, rounded up to the 256-byte alignment of parts.
inline size_t Padded(size_t bytes) {
  constexpr size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Enqueues a copy between the memory of two devices, or within one; `stream` may belong to either.
inline absl::Status CopyBetween(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  if (to_device == from_device) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  } else {
    CAIRN_RETURN_IF_CUDA_FAILS(
        cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream));
  }
  return absl::OkStatus();
}

}  // namespace cairn::gpu
