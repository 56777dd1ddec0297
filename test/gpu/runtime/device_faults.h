#pragma once

#include <cuda_runtime.h>

#include <chrono>

namespace cairn::gpu {

// Exceptions of a kernel, after which the process can no longer use the device.
enum class DeviceFault { kTrap, kWildWrite };

// Enqueues a kernel that fills the current device with threads that wait for `delay` and then raise
// an exception. No other kernel can begin before that.
cudaError_t RaiseOnDevice(DeviceFault fault, std::chrono::nanoseconds delay, cudaStream_t stream);

// Enqueues a wait of `delay` on a stream of the current device, while other streams continue.
cudaError_t DelayStream(std::chrono::nanoseconds delay, cudaStream_t stream);

}  // namespace cairn::gpu
