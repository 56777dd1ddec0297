#pragma once

// The structures of DLPack before version 1.0. Every library still exports them unless a newer
// version is requested: https://dmlc.github.io/dlpack/latest/c_api.html.

#include <cstdint>

namespace cairn::python {

inline constexpr int32_t kDlCuda = 2;
inline constexpr uint8_t kDlInt = 0, kDlUInt = 1, kDlBool = 6;

extern "C" {

struct DlDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DlDataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null means contiguous
  uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DlManagedTensor*);
};

}  // extern "C"

}  // namespace cairn::python
