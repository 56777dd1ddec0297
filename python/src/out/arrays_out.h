#pragma once

// NumPy arrays for answers: new ones, the caller's, or views of a C++ vector.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "python/src/in/buffer.h"

namespace cairn::python {

namespace nb = nanobind;

// The element type of answers.
enum class OutType { kU32, kU64, kBool };

// An array of `size` answers: the caller's `out`, or a new one where that is None.
class OutArray {
 public:
  // Throws OutputTypeError where `out` is no such array.
  OutArray(size_t size, OutType type, nb::handle out);

  template <typename T>
  absl::Span<T> span() const {
    return {static_cast<T*>(buffer_.data()), size_};
  }
  const Buffer& buffer() const { return buffer_; }
  nb::object object() && { return std::move(object_); }

 private:
  nb::object object_;
  Buffer buffer_;
  size_t size_;
};

// A read-only NumPy array of `size` values of `dtype` ("uint32") at `data`, which `owner` keeps
// alive.
nb::object ArrayOver(const void* data, size_t size, const char* dtype,
                     std::shared_ptr<const void> owner);

}  // namespace cairn::python
