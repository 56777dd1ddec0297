#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

// DLPack's structures (https://github.com/dmlc/dlpack), whose layout is one from version 0.2 on. A
// DLManagedTensor may be that of the program's own dlpack.h: nothing here is seen beside it.

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
  int64_t* strides;  // of elements; null: contiguous
  uint64_t byte_offset;
};

inline constexpr int32_t kDlCpu = 1, kDlCuda = 2, kDlCudaManaged = 13;
inline constexpr uint8_t kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBool = 6;

// What the elements of a tensor are to be.
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

// The elements of a tensor called `name` in messages. InvalidArgument for none, and for one that is
// not of this type, of one dimension, contiguous, aligned and in the memory of `device`.
absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* tensor, std::string_view name,
                                          TensorType type, int device);
// And for one of another size.
absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* tensor, std::string_view name,
                                          TensorType type, int device, size_t size);

}  // namespace cairn
