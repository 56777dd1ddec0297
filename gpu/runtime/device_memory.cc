#include "gpu/runtime/device_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace gpu {
namespace {

// This process's memory on one device.
struct Pool {
  std::mutex making;
  std::atomic<cudaMemPool_t> pool{nullptr};  // null until the first call that can create it
  std::atomic<DeviceMemoryResource*> resource{nullptr};  // if set, replaces the pool
  std::atomic<size_t> allocated{0};
  std::atomic<size_t> peak{0};
  std::mutex keeping;
  int keepers = 0;  // number of active KeepsFreedMemory scopes
};

Pool& PoolOf(int device) {
  static std::array<Pool, kMaxDevices>& pools = *new std::array<Pool, kMaxDevices>;
  return pools[device];
}

absl::Status SetKept(cudaMemPool_t pool, uint64_t bytes) {
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
  return absl::OkStatus();
}

absl::Status MakePool(int device, Pool& pool) {
  const std::lock_guard<std::mutex> lock(pool.making);
  if (pool.pool.load(std::memory_order_relaxed) != nullptr) return absl::OkStatus();
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t made = nullptr;
  ASSIGN_OR_RETURN(const size_t max_kept, MostKeptBytes());
  const BesideCaptures beside;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemPoolCreate(&made, &properties));
  if (absl::Status status = SetKept(made, max_kept); !status.ok()) {
    (void)cudaMemPoolDestroy(made);
    return status;
  }
  pool.pool.store(made, std::memory_order_release);
  return absl::OkStatus();
}

absl::StatusOr<Pool*> CurrentPool() {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  if (device >= kMaxDevices) {
    return absl::UnavailableError(absl::StrFormat(
        "CUDA device %d: only the first %d devices are supported", device, kMaxDevices));
  }
  Pool& pool = PoolOf(device);
  if (pool.pool.load(std::memory_order_acquire) == nullptr) {
    RETURN_IF_ERROR(MakePool(device, pool));
  }
  return &pool;
}

absl::StatusOr<size_t> PoolAttribute(const Pool& pool, cudaMemPoolAttr attribute) {
  uint64_t bytes = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemPoolGetAttribute(pool.pool, attribute, &bytes));
  return bytes;
}

// Frees memory now or in stream order. Returns whether this succeeded.
bool Free(void* memory, size_t bytes, int device, cudaStream_t stream) {
  const BesideCaptures beside;
  DeviceMemoryResource* const resource = PoolOf(device).resource.load();
  const auto free_behind = [&](cudaStream_t behind) {
    if (resource == nullptr) return cudaFreeAsync(memory, behind) == cudaSuccess;
    resource->Deallocate(memory, bytes, behind);
    return true;
  };
  if (stream != AfterAllUses()) return free_behind(stream);
  const absl::StatusOr<cudaStream_t> behind = StreamBehindUses(device);
  if (behind.ok()) return free_behind(*behind);
  // Without such a stream, waits for all streams.
  if (cudaDeviceSynchronize() != cudaSuccess) return false;
  return resource == nullptr ? cudaFree(memory) == cudaSuccess : free_behind(nullptr);
}

// Takes memory from the application's resource, or from the pool.
absl::StatusOr<void*> TakeMemory(const Pool& pool, size_t bytes, cudaStream_t stream) {
  if (!MayAllocate(bytes, pool.allocated.load())) return nullptr;
  if (DeviceMemoryResource* const resource = pool.resource.load(); resource != nullptr) {
    return resource->Allocate(bytes, stream);
  }
  void* memory = nullptr;
  const cudaError_t error = cudaMallocFromPoolAsync(&memory, bytes, pool.pool, stream);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  CAIRN_RETURN_IF_CUDA_FAILS(error);
  return memory;
}

// OK if the ordinal is one of the process's devices.
absl::Status CheckOrdinal(int device) {
  int devices = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDeviceCount(&devices));
  if (device >= 0 && device < std::min(devices, kMaxDevices)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("no usable CUDA device %d; found %d", device, devices));
}

}  // namespace

absl::StatusOr<size_t> MostKeptBytes() {
  constexpr size_t kMax = size_t{1} << 30, kPart = 16;
  size_t free = 0, total = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemGetInfo(&free, &total));
  return std::min(total / kPart, kMax);
}

KeepsFreedMemory::KeepsFreedMemory() {
  const absl::StatusOr<Pool*> current = CurrentPool();
  int device = 0;
  if (!current.ok() || cudaGetDevice(&device) != cudaSuccess) return;
  Pool& pool = **current;
  const std::lock_guard<std::mutex> lock(pool.keeping);
  if (pool.keepers == 0 && !SetKept(pool.pool, UINT64_MAX).ok()) return;
  ++pool.keepers;
  device_ = device;
}

KeepsFreedMemory::~KeepsFreedMemory() {
  if (device_ < 0) return;
  Pool& pool = PoolOf(device_);
  const std::lock_guard<std::mutex> lock(pool.keeping);
  if (--pool.keepers != 0) return;
  const OnDevice on_device(device_);
  const absl::StatusOr<size_t> max_kept = MostKeptBytes();
  (void)SetKept(pool.pool, max_kept.value_or(0));
}

absl::StatusOr<size_t> ReservedDeviceBytes() {
  ASSIGN_OR_RETURN(auto* const pool, CurrentPool());
  return PoolAttribute(*pool, cudaMemPoolAttrReservedMemCurrent);
}

absl::StatusOr<size_t> AvailableDeviceBytes() {
  ASSIGN_OR_RETURN(auto* pool, CurrentPool());
  if (DeviceMemoryResource* const resource = pool->resource.load(); resource != nullptr) {
    return WithinDeviceLimit(resource->AvailableBytes(), pool->allocated.load());
  }
  size_t free = 0, total = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemGetInfo(&free, &total));
  ASSIGN_OR_RETURN(const size_t reserved, PoolAttribute(*pool, cudaMemPoolAttrReservedMemCurrent));
  ASSIGN_OR_RETURN(const size_t used, PoolAttribute(*pool, cudaMemPoolAttrUsedMemCurrent));
  const size_t kept = reserved - std::min(reserved, used);
  return WithinDeviceLimit(free + kept, pool->allocated.load());
}

size_t AllocatedDeviceBytes() {
  const absl::StatusOr<Pool*> pool = CurrentPool();
  return pool.ok() ? (*pool)->allocated.load() : 0;
}

absl::StatusOr<bool> AllowPeerAccess(int device, int peer) {
  if (device == peer) return true;
  int possible = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaDeviceCanAccessPeer(&possible, peer, device));
  if (possible == 0) return false;
  {
    // Copies of memory outside the pool then need no staging.
    const OnDevice on_peer(peer);
    const cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      (void)cudaGetLastError();
    } else {
      CAIRN_RETURN_IF_CUDA_FAILS(error);
    }
  }
  const OnDevice on_device(device);
  ASSIGN_OR_RETURN(auto* pool, CurrentPool());
  if (pool->resource.load() != nullptr) return false;
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = peer;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemPoolSetAccess(pool->pool, &access, 1));
  return true;
}

size_t TakePeakDeviceBytes() {
  const absl::StatusOr<Pool*> pool = CurrentPool();
  if (!pool.ok()) return 0;
  return (*pool)->peak.exchange((*pool)->allocated.load());
}

absl::Status CheckDeviceMemory(size_t bytes, const char* what) {
  ASSIGN_OR_RETURN(const size_t available, AvailableDeviceBytes());
  if (bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "device memory: %s needs %d bytes, %d are available", what, bytes, available));
}

absl::StatusOr<void*> AllocateDeviceBytes(size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  const BesideCaptures beside;
  ASSIGN_OR_RETURN(auto* pool, CurrentPool());
  ASSIGN_OR_RETURN(void* const memory, TakeMemory(*pool, bytes, stream));
  if (memory == nullptr) {
    const absl::StatusOr<size_t> available = AvailableDeviceBytes();
    return absl::ResourceExhaustedError(
        absl::StrFormat("device memory: cannot allocate %d bytes, %d are available", bytes,
                        available.ok() ? *available : 0));
  }
  const size_t allocated = pool->allocated.fetch_add(bytes) + bytes;
  size_t peak = pool->peak.load();
  while (peak < allocated && !pool->peak.compare_exchange_weak(peak, allocated)) {
  }
  return memory;
}

void FreeDeviceBytes(void* memory, size_t bytes, int device, cudaStream_t stream) {
  if (memory == nullptr) return;
  const OnDevice on_device(device);
  if (!Free(memory, bytes, device, stream)) {
    // If the device is lost, its memory is gone, too. Memory allocated in an invalidated capture is
    // freed with the capture. Otherwise memory that could not be freed still counts as allocated.
    const cudaError_t error = cudaGetLastError();
    if (error != cudaErrorStreamCaptureInvalidated &&
        !absl::IsUnavailable(CudaStatus(error, "cudaFreeAsync()", __FILE__, __LINE__))) {
      return;
    }
  }
  PoolOf(device).allocated.fetch_sub(bytes);
}

}  // namespace gpu

absl::Status TrimDeviceMemory(int device, uint64_t keep_bytes) {
  RETURN_IF_ERROR(gpu::CheckOrdinal(device));
  const cudaMemPool_t pool = gpu::PoolOf(device).pool.load();
  if (pool == nullptr) return absl::OkStatus();
  const gpu::BesideCaptures beside;
  uint64_t used = 0, reserved = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  if (reserved <= used || reserved - used <= keep_bytes) return absl::OkStatus();
  // CUDA counts memory that is in use as kept memory.
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemPoolTrimTo(pool, used + keep_bytes));
  return absl::OkStatus();
}

absl::Status SetDeviceMemoryResource(int device, DeviceMemoryResource* resource) {
  RETURN_IF_ERROR(gpu::CheckOrdinal(device));
  gpu::Pool& pool = gpu::PoolOf(device);
  if (const size_t allocated = pool.allocated.load(); allocated != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("CUDA device %d: %d bytes of its memory are still in use; free them first",
                        device, allocated));
  }
  pool.resource.store(resource);
  return absl::OkStatus();
}

}  // namespace cairn
