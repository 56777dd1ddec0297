#include <cstdint>

#include "test/gpu/runtime/device_faults.h"

namespace cairn::gpu {
namespace {

// Small enough that blocks fill a multiprocessor of any device.
constexpr int kThreads = 256;

__device__ uint64_t Now() {
  uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void __launch_bounds__(kThreads)
    WaitAndRaise(DeviceFault fault, uint64_t nanoseconds, volatile uint32_t* nowhere) {
  const uint64_t start = Now();
  while (Now() - start < nanoseconds) __nanosleep(1000);
  if (fault == DeviceFault::kTrap) __trap();
  *nowhere = 1;
}

__global__ void Wait(uint64_t nanoseconds) {
  const uint64_t start = Now();
  while (Now() - start < nanoseconds) __nanosleep(1000);
}

}  // namespace

cudaError_t DelayStream(std::chrono::nanoseconds delay, cudaStream_t stream) {
  Wait<<<1, 1, 0, stream>>>(static_cast<uint64_t>(delay.count()));
  return cudaGetLastError();
}

cudaError_t RaiseOnDevice(DeviceFault fault, std::chrono::nanoseconds delay, cudaStream_t stream) {
  int device = 0, multiprocessors = 0, blocks = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, WaitAndRaise, kThreads, 0);
  if (error != cudaSuccess) return error;
  // Twice the number of blocks that fit, so that all later kernels wait for them.
  WaitAndRaise<<<2 * multiprocessors * blocks, kThreads, 0, stream>>>(
      fault, static_cast<uint64_t>(delay.count()), reinterpret_cast<uint32_t*>(16));
  return cudaGetLastError();
}

}  // namespace cairn::gpu
