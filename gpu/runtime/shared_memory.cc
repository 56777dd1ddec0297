#include "gpu/runtime/shared_memory.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/devices.h"

namespace cairn::gpu {
namespace {

std::atomic<size_t> limit{0};

}  // namespace

absl::StatusOr<size_t> MostSharedBytes() {
  int device = 0, bytes = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const size_t asked = limit.load(std::memory_order_relaxed);
  return asked == 0 ? static_cast<size_t>(bytes) : std::min(asked, static_cast<size_t>(bytes));
}

absl::Status SharedMemoryOfKernel::AllowMost(const void* kernel) {
  int device = 0, bytes = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  if (device >= kMostDevices) {
    return absl::UnavailableError(
        absl::StrFormat("CUDA device %d: beyond the first %d devices", device, kMostDevices));
  }
  const uint64_t bit = uint64_t{1} << device;
  if ((allowed_.load(std::memory_order_acquire) & bit) != 0) return absl::OkStatus();
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  cudaFuncAttributes attributes;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaFuncGetAttributes(&attributes, kernel));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           bytes - static_cast<int>(attributes.sharedSizeBytes)));
  allowed_.fetch_or(bit, std::memory_order_release);
  return absl::OkStatus();
}

void LimitSharedBytes(size_t bytes) {
  limit.store(bytes, std::memory_order_relaxed);
}

}  // namespace cairn::gpu
