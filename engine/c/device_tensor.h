#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

// DLPack's structures (https://github.com/dmlc/dlpack), whose layout is the same since version 0.2.
// They are declared here, so that a program's own dlpack.h, which may define DLManagedTensor, does
// not conflict.

struct DLManagedTensor;

namespace cairn {

struct DlTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

inline constexpr int32_t kDlCpu = 1, kDlCuda = 2, kDlCudaManaged = 13;
inline constexpr uint8_t kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBool = 6;

// The required element type of a tensor.
enum class TensorType : uint8_t {
  kU32,
  kU64,
  kByte,
  kU32OrI32,
  kU64OrI64,
  kBool,
};

// Elements in the memory of a device.
struct DeviceElements {
  void* data = nullptr;
  size_t size = 0;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Returns the elements of a tensor that messages call `name`. InvalidArgument: the tensor is null,
// or it is not of this type, one-dimensional, contiguous, aligned and in the memory of `device`.
absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* tensor, std::string_view name,
                                          TensorType type, int device);
// The same, and InvalidArgument if the tensor does not have `size` elements.
absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* tensor, std::string_view name,
                                          TensorType type, int device, size_t size);

}  // namespace cairn
