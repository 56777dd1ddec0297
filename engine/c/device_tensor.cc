#include "engine/c/device_tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/c/error.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

struct ElementType {
  const char* name;
  uint8_t bits;
  uint8_t code;
  uint8_t other_code;  // an accepted alternative
};

ElementType ElementTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kU32:
      return {"uint32", 32, kDlUInt, kDlUInt};
    case TensorType::kU64:
      return {"uint64", 64, kDlUInt, kDlUInt};
    case TensorType::kByte:
      return {"uint8", 8, kDlUInt, kDlUInt};
    case TensorType::kU32OrI32:
      return {"uint32 or int32", 32, kDlUInt, kDlInt};
    case TensorType::kU64OrI64:
      return {"uint64 or int64", 64, kDlUInt, kDlInt};
    case TensorType::kBool:
      break;
  }
  return {"bool or uint8", 8, kDlBool, kDlUInt};
}

template <typename... Args>
absl::Status Wrong(std::string_view name, const absl::FormatSpec<Args...>& format,
                   const Args&... args) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), ": ", absl::StrFormat(format, args...)));
}

}  // namespace

absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* managed, std::string_view name,
                                          TensorType type, int device) {
  RETURN_IF_ERROR(CheckNotNull(managed, name));
  // A DLManagedTensor begins with a DLTensor.
  const DlTensor& tensor = *reinterpret_cast<const DlTensor*>(managed);
  if (tensor.device_type != kDlCuda && tensor.device_type != kDlCudaManaged) {
    return Wrong(name, "expected memory of CUDA (DLDeviceType %d or %d), found type %d", kDlCuda,
                 kDlCudaManaged, tensor.device_type);
  }
  if (tensor.device_type == kDlCuda && tensor.device_id != device) {
    return Wrong(name, "expected memory of device %d, the index's, found that of device %d", device,
                 tensor.device_id);
  }
  if (tensor.ndim != 1 || tensor.shape == nullptr || tensor.shape[0] < 0) {
    return Wrong(name, "expected a tensor of one dimension, found one of %d", tensor.ndim);
  }
  const ElementType element = ElementTypeOf(type);
  if ((tensor.code != element.code && tensor.code != element.other_code) ||
      tensor.bits != element.bits || tensor.lanes != 1) {
    return Wrong(name, "expected elements of %s, found DLDataType (code %d, %d bits, %d lanes)",
                 element.name, tensor.code, tensor.bits, tensor.lanes);
  }
  const size_t size = static_cast<size_t>(tensor.shape[0]);
  if (tensor.strides != nullptr && tensor.strides[0] != 1 && size > 1) {
    return Wrong(name, "expected contiguous elements, found a stride of %d", tensor.strides[0]);
  }
  if (size == 0) return DeviceElements{};
  if (tensor.data == nullptr) return Wrong(name, "expected %d elements, found no memory", size);
  char* const data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % (element.bits / 8) != 0) {
    return Wrong(name, "expected elements aligned to %d bytes, found address %p", element.bits / 8,
                 data);
  }
  return DeviceElements{data, size};
}

absl::StatusOr<DeviceElements> ReadTensor(const DLManagedTensor* tensor, std::string_view name,
                                          TensorType type, int device, size_t size) {
  ASSIGN_OR_RETURN(const DeviceElements elements, ReadTensor(tensor, name, type, device));
  if (elements.size != size) {
    return Wrong(name, "expected %d elements, found %d", size, elements.size);
  }
  return elements;
}

}  // namespace cairn
