#include "python/src/device/device_array.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "python/src/base/errors.h"
#include "python/src/device/dlpack_abi.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

struct TypeFacts {
  const char* name;
  size_t width;
  const char* typestr;  // in the CUDA array interface
  uint8_t dl_code;
};

TypeFacts FactsOf(DeviceType type) {
  switch (type) {
    case DeviceType::kU8:
      return {"uint8", 1, "|u1", kDlUInt};
    case DeviceType::kBool:
      return {"bool", 1, "|b1", kDlBool};
    case DeviceType::kU32:
      return {"uint32", 4, "<u4", kDlUInt};
    case DeviceType::kU64:
      break;
  }
  return {"uint64", 8, "<u8", kDlUInt};
}

// The number of a stream in DLPack and the CUDA array interface, where 1 is the default stream.
uintptr_t NumberOf(DeviceStream stream) {
  return stream == nullptr ? 1 : reinterpret_cast<uintptr_t>(stream);
}

// The functions of the driver that make one stream wait for another. They are looked up on first
// use, so that the package can be loaded without CUDA.
class Driver {
 public:
  static const Driver& Get() {
    static const Driver driver;
    return driver;
  }

  // Makes work enqueued later on `waiting` wait for work already enqueued on `other`. Returns false
  // if the driver fails.
  bool Wait(uintptr_t other, DeviceStream waiting, int device) const {
    if (library_ == nullptr) return false;
    int ordinal = 0;
    void *context = nullptr, *event = nullptr, *previous = nullptr;
    constexpr unsigned kDisableTiming = 2;
    if (get_device_(&ordinal, device) != 0 || retain_(&context, ordinal) != 0) return false;
    bool good = push_(context) == 0;
    if (good) {
      good = create_(&event, kDisableTiming) == 0;
      if (good) {
        good = record_(event, reinterpret_cast<void*>(other)) == 0 && wait_(waiting, event, 0) == 0;
        destroy_(event);  // released after the stream has passed it
      }
      pop_(&previous);
    }
    release_(ordinal);
    return good;
  }

 private:
  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const bool found = library_ != nullptr && Find("cuDeviceGet", &get_device_) &&
                       Find("cuDevicePrimaryCtxRetain", &retain_) &&
                       Find("cuDevicePrimaryCtxRelease_v2", &release_) &&
                       Find("cuCtxPushCurrent_v2", &push_) && Find("cuCtxPopCurrent_v2", &pop_) &&
                       Find("cuEventCreate", &create_) && Find("cuEventRecord", &record_) &&
                       Find("cuStreamWaitEvent", &wait_) && Find("cuEventDestroy_v2", &destroy_);
    if (!found) library_ = nullptr;
  }

  template <typename Function>
  bool Find(const char* name, Function* function) {
    void* symbol = dlsym(library_, name);
    std::memcpy(function, &symbol, sizeof symbol);
    return symbol != nullptr;
  }

  void* library_;
  int (*get_device_)(int*, int) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  int (*release_)(int) = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*create_)(void**, unsigned) = nullptr;
  int (*record_)(void*, void*) = nullptr;
  int (*wait_)(DeviceStream, void*, unsigned) = nullptr;
  int (*destroy_)(void*) = nullptr;
};

}  // namespace

DeviceArray::DeviceArray(nb::handle object, DeviceType type, int device, DeviceStream stream,
                         bool writable, const char* argument)
    : type_(type), device_(device), writable_(writable), argument_(argument) {
  if (nb::hasattr(object, "__dlpack__") && nb::hasattr(object, "__dlpack_device__")) {
    ReadDlPack(object, stream);
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    ReadCudaInterface(object, stream);
  } else {
    Refuse(std::string("an array of ") + FactsOf(type).name + " on device " +
           std::to_string(device) + " (DLPack or __cuda_array_interface__), found " +
           Described(object));
  }
}

void DeviceArray::Refuse(const std::string& message) const {
  throw PythonError(writable_ ? "OutputTypeError" : "KeyTypeError",
                    std::string(argument_) + ": expected " + message);
}

void DeviceArray::ReadDlPack(nb::handle object, DeviceStream stream) {
  const TypeFacts facts = FactsOf(type_);
  const nb::object where = object.attr("__dlpack_device__")();
  const int kind = nb::cast<int>(nb::int_(nb::object(where[0])));
  const int ordinal = nb::cast<int>(nb::int_(nb::object(where[1])));
  if (kind != kDlCuda || ordinal != device_) {
    Refuse(
        "an array on CUDA device " + std::to_string(device_) + ", found " + Described(object) +
        (kind == kDlCuda ? " on device " + std::to_string(ordinal) : " that is on no CUDA device"));
  }
  // The array's owner makes `stream` wait for the work that it has enqueued.
  held_ = object.attr("__dlpack__")(nb::arg("stream") = NumberOf(stream));
  auto* managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(held_.ptr(), "dltensor"));
  if (managed == nullptr) throw nb::python_error();
  const DlTensor& tensor = managed->dl_tensor;
  const bool same_type = tensor.dtype.lanes == 1 && tensor.dtype.bits == 8 * facts.width &&
                         tensor.dtype.code == facts.dl_code;
  if (!same_type) {
    Refuse(std::string("an array of ") + facts.name + ", found " + Described(object));
  }
  if (tensor.ndim != 1) {
    Refuse("a one-dimensional array, found one of " + std::to_string(tensor.ndim) + " dimensions");
  }
  if (tensor.strides != nullptr && tensor.shape[0] > 1 && tensor.strides[0] != 1) {
    Refuse("a contiguous array, found one with a stride of " + std::to_string(tensor.strides[0]) +
           " elements");
  }
  data_ = static_cast<char*>(tensor.data) + tensor.byte_offset;
  size_ = static_cast<size_t>(tensor.shape[0]);
}

void DeviceArray::ReadCudaInterface(nb::handle object, DeviceStream stream) {
  const TypeFacts facts = FactsOf(type_);
  const nb::dict interface = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  held_ = nb::borrow(object);
  const std::string typestr = nb::cast<std::string>(interface["typestr"]);
  if (typestr != facts.typestr) {
    Refuse(std::string("an array of ") + facts.name + ", found one of '" + typestr + "'");
  }
  // Masked values would be used as values.
  if (interface.contains("mask") && !interface["mask"].is_none()) {
    Refuse("an array without a mask, found " + Described(object) + " with one");
  }
  const nb::tuple shape = nb::cast<nb::tuple>(interface["shape"]);
  if (shape.size() != 1) {
    Refuse("a one-dimensional array, found one of " + std::to_string(shape.size()) + " dimensions");
  }
  size_ = nb::cast<size_t>(shape[0]);
  if (interface.contains("strides") && !interface["strides"].is_none() && size_ > 1) {
    const auto stride = nb::cast<int64_t>(nb::object(nb::object(interface["strides"])[0]));
    if (stride != static_cast<int64_t>(facts.width)) {
      Refuse("a contiguous array, found one with a stride of " + std::to_string(stride) + " bytes");
    }
  }
  const nb::tuple data = nb::cast<nb::tuple>(interface["data"]);
  data_ = reinterpret_cast<void*>(nb::cast<uintptr_t>(data[0]));
  if (writable_ && nb::cast<bool>(data[1]))
    Refuse("an array that can be written to, found a read-only one");
  if (!interface.contains("stream") || interface["stream"].is_none()) return;
  const auto owner = nb::cast<uintptr_t>(interface["stream"]);
  if (owner == 0) Refuse("a stream by the rules of __cuda_array_interface__, found 0");
  if (owner != NumberOf(stream) && !Driver::Get().Wait(owner, stream, device_)) {
    throw PythonError(
        "Unavailable",
        std::string(argument_) + ": the CUDA driver cannot make the stream wait for the array's");
  }
}

DeviceStream StreamOf(nb::handle object) {
  nb::object number = nb::borrow(object);
  if (object.is_none()) return nullptr;
  if (nb::hasattr(object, "__cuda_stream__")) {
    const nb::object pair = object.attr("__cuda_stream__");
    number = nb::object((PyCallable_Check(pair.ptr()) != 0 ? pair() : pair)[1]);
  } else if (nb::hasattr(object, "ptr")) {
    number = object.attr("ptr");
  } else if (nb::hasattr(object, "cuda_stream")) {
    number = object.attr("cuda_stream");
  }
  if (PyLong_Check(number.ptr()) == 0 || PyBool_Check(number.ptr())) {
    ThrowInvalid("stream: expected a CUDA stream or its address, found " + Described(object));
  }
  const auto address = nb::cast<uintptr_t>(number);
  // 1 is another name of the default stream.
  return address == 1 ? nullptr : reinterpret_cast<DeviceStream>(address);
}

nb::object NewArrayLike(nb::handle like, size_t size, DeviceType type, const char* argument) {
  const nb::handle type_of(reinterpret_cast<PyObject*>(Py_TYPE(like.ptr())));
  const std::string module = nb::str(type_of.attr("__module__")).c_str();
  const std::string library = module.substr(0, module.find('.'));
  const char* dtype = FactsOf(type).name;
  if (library == "cupy") {
    return nb::module_::import_("cupy").attr("empty")(size, nb::arg("dtype") = dtype);
  }
  if (library == "torch") {
    const nb::module_ torch = nb::module_::import_("torch");
    return torch.attr("empty")(size, nb::arg("dtype") = torch.attr(dtype),
                               nb::arg("device") = like.attr("device"));
  }
  throw PythonError("OutputTypeError", std::string(argument) +
                                           ": expected an array, since only for keys of CuPy and "
                                           "PyTorch one is made, found None");
}

}  // namespace cairn::python
