#pragma once

#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <memory>
#include <vector>

namespace cairn::gpu {

// An array in memory of the current device, for tests: outside the library's pool, exact in size,
// so that compute-sanitizer sees every byte beyond it.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    BOOST_REQUIRE(cudaMalloc(&data_, size * sizeof(T) + (size == 0)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    BOOST_REQUIRE(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice) ==
                  cudaSuccess);
    // A copy of ordinary memory returns before it has arrived, and other streams do not wait for
    // it.
    BOOST_REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { (void)cudaFree(data_); }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  // The elements, once all work on the device is done.
  std::vector<T> ToHost() const {
    const auto values = std::make_unique<T[]>(size_);
    BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    BOOST_REQUIRE(cudaMemcpy(values.get(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) ==
                  cudaSuccess);
    return std::vector<T>(values.get(), values.get() + size_);
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cairn::gpu
