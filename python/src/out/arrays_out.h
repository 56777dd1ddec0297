#pragma once

// NumPy arrays for results: new ones, the caller's, or views of a C++ vector.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "python/src/in/buffer.h"

namespace cairn::python {

namespace nb = nanobind;

// The element type of results.
enum class OutType { kU32, kU64, kBool };

// An array of `size` results: the caller's `out`, or a new one if that is None.
class OutArray {
 public:
  // Throws OutputTypeError if `out` is not such an array.
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

// A read-only NumPy array of `size` numbers of `type` at `data`, which `owner` keeps alive.
nb::object ArrayOver(DataType type, const void* data, size_t size,
                     std::shared_ptr<const void> owner);

}  // namespace cairn::python
