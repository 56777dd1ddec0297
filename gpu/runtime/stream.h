#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/runtime/cuda_status.h"

namespace cairn::gpu {

// Makes `device` the calling thread's current device until the end of the scope. If the device does
// not exist, the first call that uses it fails.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = -1;
    if (before_ != device) (void)cudaSetDevice(device);
  }
  ~OnDevice() {
    if (before_ >= 0) (void)cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;
};

// A stream of the current device that does not synchronize with the default stream. Movable.
class Stream {
 public:
  static absl::StatusOr<Stream> Create() {
    Stream stream;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamCreateWithFlags(&stream.stream_, cudaStreamNonBlocking));
    return stream;
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  cudaStream_t get() const { return stream_; }
  // Waits for all enqueued work.
  absl::Status Wait() const {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream_));
    return absl::OkStatus();
  }

 private:
  Stream() = default;
  cudaStream_t stream_ = nullptr;
};

// Waits for the stream at the end of the scope, however it is left. Must be declared after the host
// memory that the enqueued work reads. Errors are reported by calls within the scope.
class WaitsAtEnd {
 public:
  explicit WaitsAtEnd(cudaStream_t stream) : stream_(stream) {}
  ~WaitsAtEnd() { (void)cudaStreamSynchronize(stream_); }
  WaitsAtEnd(const WaitsAtEnd&) = delete;
  WaitsAtEnd& operator=(const WaitsAtEnd&) = delete;

 private:
  cudaStream_t stream_;
};

}  // namespace cairn::gpu
