#include "python/src/in/buffer.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace cairn::python {
namespace {

bool IsContiguous(const Py_buffer& view) {
  return view.strides == nullptr || view.shape[0] <= 1 || view.strides[0] == view.itemsize;
}

// The code of a buffer's format without its byte order, and whether that is this machine's.
std::pair<std::string_view, bool> SplitFormat(const Py_buffer& view) {
  std::string_view format = view.format == nullptr ? "B" : view.format;
  bool native = true;
  if (!format.empty() && std::string_view("@=<>!").find(format[0]) != std::string_view::npos) {
    native = (format[0] != '>' && format[0] != '!') || view.itemsize == 1;
    format.remove_prefix(1);
  }
  return {format, native};
}

bool IsOfType(std::string_view code, Py_ssize_t width, DataType type) {
  if (code.size() != 1) return false;
  const auto is = [&](std::string_view codes, Py_ssize_t wanted) {
    return codes.find(code[0]) != std::string_view::npos && width == wanted;
  };
  constexpr std::string_view kUnsigned = "BHILQN";
  constexpr std::string_view kSigned = "bhilqn";
  switch (type) {
    case DataType::kU8:
      return is(kUnsigned, 1);
    case DataType::kU16:
      return is(kUnsigned, 2);
    case DataType::kU32:
      return is(kUnsigned, 4);
    case DataType::kU64:
      return is(kUnsigned, 8);
    case DataType::kI8:
      return is(kSigned, 1);
    case DataType::kI16:
      return is(kSigned, 2);
    case DataType::kI32:
      return is(kSigned, 4);
    case DataType::kI64:
      return is(kSigned, 8);
    case DataType::kF32:
      return is("f", 4);
    case DataType::kF64:
      return is("d", 8);
    case DataType::kText:
    case DataType::kBytes:
      return false;
  }
  return false;
}

std::string TextOf(nb::handle object) {
  return nb::str(object).c_str();
}

}  // namespace

bool Buffer::Hold(nb::handle object, bool writable) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return false;
  // Not FULL, which allows elements that are reached through pointers.
  if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  held_ = true;
  return true;
}

std::optional<std::string> Buffer::WhyNotShaped(const char* dtype, nb::handle object) const {
  const auto expected = [&](const char* what) {
    return "expected " + std::string(what) + " array of " + dtype + ", found ";
  };
  if (view_.ndim != 1) {
    return expected("a one-dimensional") + "one of " + std::to_string(view_.ndim) +
           " dimensions; convert with .ravel()";
  }
  if (!IsContiguous(view_)) {
    return expected("a contiguous") + "one with a stride of " + std::to_string(view_.strides[0]) +
           " bytes; copy with numpy.ascontiguousarray()";
  }
  if (view_.itemsize > 1 && reinterpret_cast<uintptr_t>(view_.buf) % view_.itemsize != 0) {
    return expected("an aligned") + "one that is not; copy with .copy()";
  }
  // Masked values would be used as values.
  if (nb::hasattr(object, "mask")) {
    return expected("an") + Described(object) + "; fill it with .filled(), or drop masked values";
  }
  return std::nullopt;
}

bool Buffer::IsOf(DataType type) const {
  const auto [code, native] = SplitFormat(view_);
  return native && IsOfType(code, view_.itemsize, type);
}

std::optional<DataType> Buffer::IntegerType() const {
  for (int type = 0; type <= static_cast<int>(DataType::kI64); ++type) {
    if (IsOf(static_cast<DataType>(type))) return static_cast<DataType>(type);
  }
  return std::nullopt;
}

std::optional<std::string> Buffer::WhyNot(DataType type, nb::handle object) const {
  const char* dtype = DtypeName(type);
  const auto [code, native] = SplitFormat(view_);
  if (!IsOfType(code, view_.itemsize, type)) {
    return "expected an array of " + std::string(dtype) + ", found " + Described(object) +
           "; convert with .astype(numpy." + dtype + ")";
  }
  if (!native) {
    return "expected " + std::string(dtype) + " in this machine's byte order, found " +
           Described(object) + "; convert with .astype(numpy." + dtype + ")";
  }
  return WhyNotShaped(dtype, object);
}

std::optional<std::string> Buffer::WhyNotBool(nb::handle object) const {
  if (SplitFormat(view_).first != "?")
    return "expected an array of bool, found " + Described(object);
  return WhyNotShaped("bool", object);
}

const char* DtypeName(DataType type) {
  constexpr const char* kNames[] = {"uint8", "uint16", "uint32",  "uint64",  "int8", "int16",
                                    "int32", "int64",  "float32", "float64", "text", "bytes"};
  return kNames[static_cast<size_t>(type)];
}

std::string Described(nb::handle object) {
  if (nb::hasattr(object, "dtype") && nb::hasattr(object, "shape") &&
      PyType_Check(object.ptr()) == 0) {
    const std::string type =
        TextOf(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
    return (type == "ndarray" ? "an array" : type) + " of " + TextOf(object.attr("dtype"));
  }
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  const std::string module = TextOf(type.attr("__module__"));
  const std::string name = TextOf(type.attr("__qualname__"));
  return module == "builtins" ? name : module + "." + name;
}

}  // namespace cairn::python
