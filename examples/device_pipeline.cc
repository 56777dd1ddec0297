// A device pipeline: keys are generated on a GPU and joined there with an index, and the rows stay
// there. Only the printed values are copied to the host.
//   device_pipeline            exits with status 77 if there is no device
#include <cstdint>
#include <iostream>
#include <memory>
#include <numeric>
#include <vector>

#include "cairn/device.h"

#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace {

constexpr int kSkipped = 77;

#ifdef HAVE_CUDA

absl::Status FromCuda(cudaError_t error) {
  return error == cudaSuccess ? absl::OkStatus() : absl::InternalError(cudaGetErrorString(error));
}

// `size` elements of device memory.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    if (cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)) != cudaSuccess) size_ = 0;
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return size_; }
  absl::Status CopyFrom(const std::vector<T>& host) {
    return FromCuda(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  absl::Status CopyTo(std::vector<T>* host) const {
    host->resize(size_);
    return FromCuda(cudaMemcpy(host->data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

absl::Status Run(const cairn::Device& device) {
  std::cout << "device " << device.ordinal << ": " << device.name << "\n";
  constexpr size_t kEntries = 1 << 20, kQueries = 1 << 16;
  if (absl::Status s = FromCuda(cudaSetDevice(device.ordinal)); !s.ok()) return s;
  cudaStream_t stream = nullptr;
  if (absl::Status s = FromCuda(cudaStreamCreate(&stream)); !s.ok()) return s;

  // Row i has the key 3 i. In a real pipeline, its own kernels would write both columns.
  std::vector<uint64_t> keys(kEntries);
  std::vector<cairn::RowId> rows(kEntries);
  std::iota(rows.begin(), rows.end(), 0);
  for (size_t i = 0; i < kEntries; ++i) keys[i] = 3 * i;
  std::vector<uint64_t> queries(kQueries);
  for (size_t i = 0; i < kQueries; ++i) queries[i] = i;

  DeviceArray<uint64_t> device_keys(kEntries), device_queries(kQueries);
  DeviceArray<cairn::RowId> device_rows(kEntries), found(kQueries);
  if (found.size() == 0) return absl::ResourceExhaustedError("no device memory");
  if (absl::Status s = device_keys.CopyFrom(keys); !s.ok()) return s;
  if (absl::Status s = device_rows.CopyFrom(rows); !s.ok()) return s;
  if (absl::Status s = device_queries.CopyFrom(queries); !s.ok()) return s;

  // Sorts copies of the columns on the device, and builds the index there.
  const auto index = cairn::MakeDeviceIndex(
      "gpu:auto", cairn::DeviceKeys(device_keys.data(), kEntries), device_rows.data(), stream);
  if (!index.ok()) return index.status();
  // Enqueues the search and returns. More work may follow on the stream before the host waits.
  const cairn::DeviceKeys queries_there(device_queries.data(), kQueries);
  const auto batch = cairn::DeviceBatch::FindFirst(queries_there, found.data());
  if (absl::Status s = (*index)->Execute(batch, stream); !s.ok()) return s;
  if (absl::Status s = FromCuda(cudaStreamSynchronize(stream)); !s.ok()) return s;

  std::vector<cairn::RowId> answers;
  if (absl::Status s = found.CopyTo(&answers); !s.ok()) return s;
  for (size_t i = 0; i < kQueries; ++i) {
    if (answers[i] != (i % 3 == 0 ? i / 3 : cairn::kNoRow)) {
      return absl::InternalError("wrong answer");
    }
  }
  std::cout << (*index)->description() << " answered " << kQueries << " queries\n";
  return FromCuda(cudaStreamDestroy(stream));
}

#else

absl::Status Run(const cairn::Device&) {
  return absl::UnavailableError("this program was built without CUDA");
}

#endif

}  // namespace

int main() {
  const auto devices = cairn::ListDevices();
  if (!devices.ok()) {
    std::cout << "skipped: " << devices.status().message() << "\n";
    return kSkipped;
  }
  const absl::Status status = Run(devices->front());
  if (absl::IsUnavailable(status)) {
    std::cout << "skipped: " << status.message() << "\n";
    return kSkipped;
  }
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
