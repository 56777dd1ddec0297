#include "gpu/device_memory.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/cuda_status.h"
#include "gpu/stream.h"

namespace cairn::gpu {
namespace {

constexpr int kMostDevices = 64;

// What this process holds of one device.
struct Pool {
  std::once_flag once;
  cudaMemPool_t pool = nullptr;
  cudaError_t error = cudaSuccess;
  std::atomic<size_t> allocated{0};
  std::atomic<size_t> peak{0};
};

Pool& PoolOf(int device) {
  static std::array<Pool, kMostDevices>& pools = *new std::array<Pool, kMostDevices>;
  return pools[device];
}

std::atomic<int64_t> allocations_left{-1};

// Counts one allocation; false if it is to fail.
bool MayAllocate() {
  int64_t left = allocations_left.load(std::memory_order_relaxed);
  do {
    if (left < 0) return true;
    if (left == 0) return false;
  } while (!allocations_left.compare_exchange_weak(left, left - 1, std::memory_order_relaxed));
  return true;
}

absl::StatusOr<Pool*> CurrentPool() {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  if (device >= kMostDevices) {
    return absl::UnavailableError(
        absl::StrFormat("CUDA device %d: beyond the first %d devices", device, kMostDevices));
  }
  Pool& pool = PoolOf(device);
  std::call_once(pool.once, [&] {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    pool.error = cudaMemPoolCreate(&pool.pool, &properties);
    if (pool.error != cudaSuccess) return;
    uint64_t keep_all = UINT64_MAX;
    pool.error = cudaMemPoolSetAttribute(pool.pool, cudaMemPoolAttrReleaseThreshold, &keep_all);
  });
  CAIRN_RETURN_IF_CUDA_FAILS(pool.error);
  return &pool;
}

}  // namespace

absl::StatusOr<size_t> AvailableDeviceBytes() {
  absl::StatusOr<Pool*> pool = CurrentPool();
  if (!pool.ok()) return pool.status();
  size_t free = 0, total = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemGetInfo(&free, &total));
  uint64_t reserved = 0, used = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemPoolGetAttribute((*pool)->pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemPoolGetAttribute((*pool)->pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return free + (reserved - used);
}

size_t AllocatedDeviceBytes() {
  const absl::StatusOr<Pool*> pool = CurrentPool();
  return pool.ok() ? (*pool)->allocated.load() : 0;
}

size_t TakePeakDeviceBytes() {
  const absl::StatusOr<Pool*> pool = CurrentPool();
  if (!pool.ok()) return 0;
  return (*pool)->peak.exchange((*pool)->allocated.load());
}

absl::Status CheckDeviceMemory(size_t bytes, const char* what) {
  const absl::StatusOr<size_t> available = AvailableDeviceBytes();
  if (!available.ok()) return available.status();
  if (bytes <= *available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "device memory: %s takes %d bytes, %d are available", what, bytes, *available));
}

void FailDeviceAllocationsAfter(int64_t count) {
  allocations_left = count < 0 ? -1 : count;
}

absl::StatusOr<void*> AllocateDeviceBytes(size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  absl::StatusOr<Pool*> pool = CurrentPool();
  if (!pool.ok()) return pool.status();
  void* memory = nullptr;
  cudaError_t error = cudaErrorMemoryAllocation;
  if (MayAllocate()) error = cudaMallocFromPoolAsync(&memory, bytes, (*pool)->pool, stream);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    const absl::StatusOr<size_t> available = AvailableDeviceBytes();
    return absl::ResourceExhaustedError(
        absl::StrFormat("device memory: no room for %d bytes, %d are available", bytes,
                        available.ok() ? *available : 0));
  }
  CAIRN_RETURN_IF_CUDA_FAILS(error);
  const size_t allocated = (*pool)->allocated.fetch_add(bytes) + bytes;
  size_t peak = (*pool)->peak.load();
  while (peak < allocated && !(*pool)->peak.compare_exchange_weak(peak, allocated)) {
  }
  return memory;
}

void FreeDeviceBytes(void* memory, size_t bytes, int device, cudaStream_t stream) {
  if (memory == nullptr) return;
  const OnDevice on_device(device);
  // Nothing can be done about a failure: the device is lost, and its memory with it.
  (void)cudaFreeAsync(memory, stream);
  PoolOf(device).allocated.fetch_sub(bytes);
}

}  // namespace cairn::gpu
