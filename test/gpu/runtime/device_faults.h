#pragma once

#include <cuda_runtime.h>

#include <chrono>

namespace cairn::gpu {

// Exceptions of a kernel, each of which ends all that its process can do on the device.
enum class DeviceFault { kTrap, kWildWrite };

// Fills the current device with threads that wait for `delay` and then raise an exception;
// enqueued. No other kernel begins meanwhile.
cudaError_t RaiseOnDevice(DeviceFault fault, std::chrono::nanoseconds delay, cudaStream_t stream);

// Lets a stream of the current device wait for `delay`, while others go on; enqueued.
cudaError_t DelayStream(std::chrono::nanoseconds delay, cudaStream_t stream);

}  // namespace cairn::gpu
