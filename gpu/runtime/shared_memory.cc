#include "gpu/runtime/shared_memory.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
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
  if (device >= kMaxDevices) {
    return absl::UnavailableError(absl::StrFormat(
        "CUDA device %d: only the first %d devices are supported", device, kMaxDevices));
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

absl::StatusOr<unsigned> ResidentBlocks::Count(const void* kernel, int threads,
                                               size_t shared_bytes) {
  constexpr int kBlockBits = 32;
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  static_assert(kMaxDevices <= std::tuple_size_v<decltype(known_)>);
  std::atomic<uint64_t>& known = known_[static_cast<size_t>(device)];
  const uint64_t last = known.load(std::memory_order_relaxed);
  if (last != 0 && last >> kBlockBits == shared_bytes) return static_cast<unsigned>(last);
  int multiprocessors = 0, blocks = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  const auto count = static_cast<unsigned>(multiprocessors * std::max(blocks, 1));
  known.store(uint64_t{shared_bytes} << kBlockBits | count, std::memory_order_relaxed);
  return count;
}

void LimitSharedBytes(size_t bytes) {
  limit.store(bytes, std::memory_order_relaxed);
}

}  // namespace cairn::gpu
