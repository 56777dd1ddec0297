#pragma once

// Arrays that support Python's buffer protocol: NumPy's, array.array, memoryview.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>

#include "cairn/key_codec.h"

namespace cairn::python {

namespace nb = nanobind;

// Holds an object's buffer, so that nothing frees or resizes it. Made and destroyed with the GIL.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }

  // Holds the buffer of `object`. False, and no Python error, where it has none that can be read
  // (written). Called once.
  bool Hold(nb::handle object, bool writable = false);

  int dimensions() const { return view_.ndim; }
  size_t size() const { return static_cast<size_t>(view_.shape[0]); }  // requires one dimension
  void* data() const { return view_.buf; }
  size_t bytes() const { return static_cast<size_t>(view_.len); }

  // Whether elements are of `type`, in this machine's byte order.
  bool IsOf(DataType type) const;
  // The type of elements that are integers, in this machine's byte order; nothing for others.
  std::optional<DataType> IntegerType() const;
  // Why this is no one-dimensional, contiguous, aligned array of `type` in this machine's byte
  // order, as "expected …, found …"; nothing where it is. `bool` stands for one byte of truth.
  std::optional<std::string> WhyNot(DataType type, nb::handle object) const;
  std::optional<std::string> WhyNotBool(nb::handle object) const;

 private:
  std::optional<std::string> WhyNotShaped(const char* dtype, nb::handle object) const;

  Py_buffer view_ = {};
  bool held_ = false;
};

// NumPy's name of a type, "uint64"; "text" and "bytes" of those.
const char* DtypeName(DataType type);

// Describes an object for a message: "an array of int64", "pandas.Series".
std::string Described(nb::handle object);

}  // namespace cairn::python
