#pragma once

// Arrays with Python's buffer protocol: NumPy's, array.array, memoryview.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>

#include "cairn/key_codec.h"

namespace cairn::python {

namespace nb = nanobind;

// Holds an object's buffer, so that nothing frees or resizes it. Created and destroyed with the
// GIL.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }

  // Holds the buffer of `object`. Returns false, without a Python error, if it has none that can be
  // read (written). Called once.
  bool Hold(nb::handle object, bool writable = false);

  int dimensions() const { return view_.ndim; }
  size_t size() const { return static_cast<size_t>(view_.shape[0]); }  // requires one dimension
  void* data() const { return view_.buf; }
  size_t bytes() const { return static_cast<size_t>(view_.len); }

  // Whether elements have type `type`, in this machine's byte order.
  bool IsOf(DataType type) const;
  // The type of elements that are integers in this machine's byte order; nothing for others.
  std::optional<DataType> IntegerType() const;
  // Explains why this is not a one-dimensional, contiguous, aligned array of `type` in this
  // machine's byte order, as "expected …, found …"; nothing if it is. `bool` means one byte per
  // truth value.
  std::optional<std::string> WhyNot(DataType type, nb::handle object) const;
  std::optional<std::string> WhyNotBool(nb::handle object) const;

 private:
  std::optional<std::string> WhyNotShaped(const char* dtype, nb::handle object) const;

  Py_buffer view_ = {};
  bool held_ = false;
};

// NumPy's name of a type, "uint64"; "text" and "bytes" for these types.
const char* DtypeName(DataType type);

// Describes an object for a message: "an array of int64", "pandas.Series".
std::string Described(nb::handle object);

}  // namespace cairn::python
