#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {

// All device memory of this library comes from here: one stream-ordered pool a device, which keeps
// some of what was freed for the next allocation, or a resource of the program's
// (cairn/device.h). Thread-safe. Tests make it fail (injected_failure.h).

// Bytes on the current device that an allocation may still take: what is free, and what the pool
// keeps.
absl::StatusOr<size_t> AvailableDeviceBytes();

// Bytes that are allocated now on the current device.
size_t AllocatedDeviceBytes();

// Bytes that the pool of the current device has taken from it, allocated or not. Of those that are
// not, it gives back at the next wait what is beyond MostKeptBytes.
absl::StatusOr<size_t> ReservedDeviceBytes();
// A sixteenth of the current device's memory, at most 1 GiB.
absl::StatusOr<size_t> MostKeptBytes();

// Lets kernels of the device `peer` read and write what is allocated here of the device `device`,
// and copies between the two go straight. False where the hardware does not offer that, or where
// the memory comes from a resource of the program's.
absl::StatusOr<bool> AllowPeerAccess(int device, int peer);

// The most bytes that were allocated at once on the current device since the last call.
size_t TakePeakDeviceBytes();

// OK if `bytes` more fit the current device; ResourceExhausted, naming `what`, the size and what is
// available. For builds, before they begin.
absl::Status CheckDeviceMemory(size_t bytes, const char* what);

// A scope in which the pool of the current device gives nothing back, so that what a build frees is
// there for its next allocation; to map 6 GB anew takes milliseconds. Whoever waits afterwards lets
// the pool give back what is too much. Scopes of several threads may overlap.
class KeepsFreedMemory {
 public:
  KeepsFreedMemory();
  ~KeepsFreedMemory();
  KeepsFreedMemory(const KeepsFreedMemory&) = delete;
  KeepsFreedMemory& operator=(const KeepsFreedMemory&) = delete;

 private:
  int device_ = -1;  // none where there is no pool
};

// Memory of the current device for `bytes` bytes, 256-byte aligned, uninitialised; usable by work
// enqueued on `stream` after the call, and by that of other streams once they have waited for it.
// ResourceExhausted, with sizes. Null for no bytes.
absl::StatusOr<void*> AllocateDeviceBytes(size_t bytes, cudaStream_t stream);
// Frees it when the work enqueued on `stream` so far is done, or, for AfterAllUses(), all work that
// reads indexes, on whatever streams.
void FreeDeviceBytes(void* memory, size_t bytes, int device, cudaStream_t stream);

// What stands for all streams on which indexes of the memory's device are used (stream_uses.h);
// itself none.
inline cudaStream_t AfterAllUses() {
  return reinterpret_cast<cudaStream_t>(UINTPTR_MAX);
}

// An array of `size` trivial elements in device memory, uninitialised. It is freed in the order of
// the stream that it was made on, so whoever uses it on another stream must have waited. Movable.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  // On the current device.
  static absl::StatusOr<DeviceBuffer> Allocate(size_t size, cudaStream_t stream) {
    DeviceBuffer buffer;
    if (size > SIZE_MAX / sizeof(T)) {
      return absl::ResourceExhaustedError("device memory: the size does not fit 64 bits");
    }
    ASSIGN_OR_RETURN(auto* memory, AllocateDeviceBytes(size * sizeof(T), stream));
    (void)cudaGetDevice(&buffer.device_);
    buffer.data_ = static_cast<T*>(memory);
    buffer.size_ = size;
    buffer.stream_ = stream;
    return buffer;
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        device_(other.device_),
        stream_(other.stream_) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) FreeDeviceBytes(data_, bytes(), device_, stream_);
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }

  // From now on the memory is freed in the order of `stream`, which must outlive this;
  // AfterAllUses() for memory of an index. The caller has waited.
  void SetStream(cudaStream_t stream) { stream_ = stream; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

// Gives *buffer memory for `size` elements, as Allocate does.
template <typename T>
absl::Status Resize(DeviceBuffer<T>* buffer, size_t size, cudaStream_t stream) {
  ASSIGN_OR_RETURN(*buffer, DeviceBuffer<T>::Allocate(size, stream));
  return absl::OkStatus();
}

// Gives *buffer memory for values of the host's, and enqueues their copying: they must stay.
template <typename T>
absl::Status Upload(absl::Span<const T> values, DeviceBuffer<T>* buffer, cudaStream_t stream) {
  RETURN_IF_ERROR(Resize(buffer, values.size(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(buffer->data(), values.data(), buffer->bytes(),
                                             cudaMemcpyHostToDevice, stream));
  return absl::OkStatus();
}

}  // namespace cairn::gpu
