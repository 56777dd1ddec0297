#include "gpu/shared_memory.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "gpu/cuda_status.h"

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

void LimitSharedBytes(size_t bytes) {
  limit.store(bytes, std::memory_order_relaxed);
}

}  // namespace cairn::gpu
