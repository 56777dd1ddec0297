#pragma once

// Arrays in the memory of a GPU, by DLPack or the CUDA array interface, without copying or waiting.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "cairn/device.h"

namespace cairn::python {

namespace nb = nanobind;

enum class DeviceType { kU8, kBool, kU32, kU64 };

// A one-dimensional, contiguous array on a device, held during a call. Its memory must live until
// the stream has done the work of the call, as in every stream-ordered library.
class DeviceArray {
 public:
  // The owner's work that is already enqueued for the array precedes later work on `stream`. Throws
  // KeyTypeError, or OutputTypeError for an output: it is not a device array, or has another
  // device, type, shape or stride.
  DeviceArray(nb::handle object, DeviceType type, int device, DeviceStream stream, bool writable,
              const char* argument);

  size_t size() const { return size_; }
  void* data() const { return data_; }

 private:
  void ReadDlPack(nb::handle object, DeviceStream stream);
  void ReadCudaInterface(nb::handle object, DeviceStream stream);
  [[noreturn]] void Refuse(const std::string& message) const;

  const DeviceType type_;
  const int device_;
  const bool writable_;
  const char* argument_;
  nb::object held_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

// The stream that a caller passed: None (the default stream), a number, or an object of CuPy (ptr),
// PyTorch (cuda_stream) or any library with __cuda_stream__.
DeviceStream StreamOf(nb::handle object);

// Creates an array of `size` elements on the device, in the library of `like`: CuPy or PyTorch.
// Throws OutputTypeError, naming `argument`, for any other.
nb::object NewArrayLike(nb::handle like, size_t size, DeviceType type, const char* argument);

}  // namespace cairn::python
