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

// All device memory of this library is allocated here: from one stream-ordered pool per device,
// which keeps some freed memory for later allocations, or from a resource of the application
// (cairn/device.h). Thread-safe. Tests can make allocations fail (injected_failure.h).

// Bytes on the current device that can still be allocated: free memory plus memory that the pool
// keeps.
absl::StatusOr<size_t> AvailableDeviceBytes();

// Bytes that are currently allocated on the current device.
size_t AllocatedDeviceBytes();

// Bytes that the current device's pool has reserved, allocated or not. At the next wait, it
// releases unallocated bytes beyond MostKeptBytes.
absl::StatusOr<size_t> ReservedDeviceBytes();
// A sixteenth of the current device's memory, at most 1 GiB.
absl::StatusOr<size_t> MostKeptBytes();

// Lets kernels of the device `peer` read and write memory allocated here on `device`, and enables
// direct copies between the two. Returns false if the hardware does not support this, or if the
// memory is from a resource of the application.
absl::StatusOr<bool> AllowPeerAccess(int device, int peer);

// The maximum number of bytes allocated at once on the current device since the last call.
size_t TakePeakDeviceBytes();

// OK if `bytes` more bytes fit the current device. Otherwise ResourceExhausted, naming `what`, the
// size and the available memory. Called by builds before they start.
absl::Status CheckDeviceMemory(size_t bytes, const char* what);

// A scope in which the current device's pool releases no memory, so that a build can reuse the
// memory that it frees; mapping 6 GB again takes milliseconds. The next wait after the scope lets
// the pool release its excess. Scopes of several threads may overlap.
class KeepsFreedMemory {
 public:
  KeepsFreedMemory();
  ~KeepsFreedMemory();
  KeepsFreedMemory(const KeepsFreedMemory&) = delete;
  KeepsFreedMemory& operator=(const KeepsFreedMemory&) = delete;

 private:
  int device_ = -1;  // -1 if there is no pool
};

// Allocates `bytes` uninitialized bytes on the current device, 256-byte aligned. The memory can be
// used by work enqueued on `stream` after the call, and by other streams once they have waited for
// it. Returns null for 0 bytes. Errors: ResourceExhausted, with sizes.
absl::StatusOr<void*> AllocateDeviceBytes(size_t bytes, cudaStream_t stream);
// Frees the memory when the work enqueued so far on `stream` is done. With AfterAllUses(), frees it
// when all work that reads indexes is done, on all streams.
void FreeDeviceBytes(void* memory, size_t bytes, int device, cudaStream_t stream);

// A placeholder, not a stream itself, for all streams on which indexes of the memory's device are
// used (stream_uses.h).
inline cudaStream_t AfterAllUses() {
  return reinterpret_cast<cudaStream_t>(UINTPTR_MAX);
}

// An array of `size` uninitialized trivial elements in device memory. It is freed in the order of
// the stream on which it was allocated, so users on other streams must have waited before. Movable.
template <typename T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceBuffer() = default;
  // Allocates on the current device.
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

  // From now on, the memory is freed in the order of `stream`, which must outlive this object; use
  // AfterAllUses() for memory of an index. The caller must have waited.
  void SetStream(cudaStream_t stream) { stream_ = stream; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

// Replaces *buffer by memory for `size` elements, like Allocate.
template <typename T>
absl::Status Resize(DeviceBuffer<T>* buffer, size_t size, cudaStream_t stream) {
  ASSIGN_OR_RETURN(*buffer, DeviceBuffer<T>::Allocate(size, stream));
  return absl::OkStatus();
}

// Replaces *buffer by memory for host values, and enqueues the copy. `values` must stay valid until
// the copy is done.
template <typename T>
absl::Status Upload(absl::Span<const T> values, DeviceBuffer<T>* buffer, cudaStream_t stream) {
  RETURN_IF_ERROR(Resize(buffer, values.size(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(buffer->data(), values.data(), buffer->bytes(),
                                             cudaMemcpyHostToDevice, stream));
  return absl::OkStatus();
}

}  // namespace cairn::gpu
