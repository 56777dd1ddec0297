#include "python/src/in/values.h"

#include <optional>
#include <string_view>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

[[noreturn]] void WrongKind(nb::handle object, DataType type, const std::string& where) {
  ThrowKeyType(where + ": expected " +
               (IsText(type) ? "str or bytes" : "a number, " + std::string(DataTypeName(type))) +
               ", found " + Described(object));
}

std::string_view TextOf(nb::handle object, const std::string& where) {
  if (PyBytes_Check(object.ptr())) {
    char* bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(object.ptr(), &bytes, &size) != 0) throw nb::python_error();
    return {bytes, static_cast<size_t>(size)};
  }
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    ThrowInvalid(where +
                 ": expected text that UTF-8 can encode, found a lone surrogate; pass bytes");
  }
  return {text, static_cast<size_t>(size)};
}

DataValue IntegerOf(nb::handle object, const std::string& where) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0) {
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (number < 0) return static_cast<int64_t>(number);
    return static_cast<uint64_t>(number);
  }
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    ThrowInvalid(where + ": expected an integer of at most 64 bits, found " +
                 nb::str(object).c_str());
  }
  return static_cast<uint64_t>(large);
}

// An array without dimensions, such as a NumPy scalar.
bool IsZeroDimensional(nb::handle object) {
  return nb::hasattr(object, "ndim") && nb::hasattr(object, "item") &&
         PyType_Check(object.ptr()) == 0 && object.attr("ndim").equal(nb::int_(0));
}

// Whether item() of an array without dimensions is its value. That of a time is an integer without
// its unit, and that of a masked array is the value below the mask.
bool ItemIsValue(nb::handle object) {
  if (nb::hasattr(object, "mask")) return false;
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object.attr("dtype"), "kind")) return true;
  const nb::object kind = object.attr("dtype").attr("kind");
  return !kind.equal(nb::str("M")) && !kind.equal(nb::str("m"));
}

// A number of Python or NumPy; nothing for other objects, including a bool.
std::optional<DataValue> Number(nb::handle object, const std::string& where) {
  PyObject* o = object.ptr();
  if (PyBool_Check(o)) return std::nullopt;
  if (PyLong_Check(o)) return IntegerOf(object, where);
  if (PyFloat_Check(o)) return PyFloat_AsDouble(o);
  if (!IsZeroDimensional(object) || !ItemIsValue(object)) return std::nullopt;
  const nb::object item = object.attr("item")();
  return PyLong_Check(item.ptr()) || PyFloat_Check(item.ptr()) ? Number(item, where) : std::nullopt;
}

}  // namespace

bool IsValue(nb::handle object) {
  PyObject* o = object.ptr();
  return object.is_none() || PyUnicode_Check(o) || PyBytes_Check(o) || PyLong_Check(o) ||
         PyFloat_Check(o) || IsZeroDimensional(object);
}

DataValue ValueOfPart(nb::handle object, DataType type, const std::string& where) {
  PyObject* o = object.ptr();
  if (object.is_none()) return std::monostate();
  if (PyUnicode_Check(o) || PyBytes_Check(o)) {
    if (!IsText(type)) WrongKind(object, type, where);
    return TextOf(object, where);
  }
  if (IsText(type)) WrongKind(object, type, where);
  if (const auto number = Number(object, where)) return *number;
  WrongKind(object, type, where);
}

DataValue ValueOfAnyType(nb::handle object, const std::string& where) {
  if (object.is_none()) return std::monostate();
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return TextOf(object, where);
  if (const auto number = Number(object, where)) return *number;
  throw PythonError("ArgumentTypeError",
                    where + ": expected str, bytes, int, float, None or a tuple of these, found " +
                        Described(object));
}

nb::object ValuesOfKey(nb::handle object, const KeyCodec& codec, bool partial,
                       const std::string& where, std::vector<DataValue>* values) {
  values->clear();
  const size_t parts = codec.parts().size();
  if (PyTuple_Check(object.ptr()) == 0 && PyList_Check(object.ptr()) == 0) {
    if (parts > 1 && !partial) {
      ThrowKeyType(where + ": expected a tuple of " + std::to_string(parts) +
                   " values, one per part, found " + Described(object));
    }
    values->push_back(ValueOfPart(object, codec.parts()[0], where));
    return nb::borrow(object);
  }
  // A plain tuple, which a value's Python code cannot change while it runs.
  const nb::object held = nb::steal(PySequence_Tuple(object.ptr()));
  if (!held.is_valid()) throw nb::python_error();
  const auto size = static_cast<size_t>(nb::len(held));
  if (partial ? size == 0 || size > parts : size != parts) {
    ThrowKeyType(where + ": expected a tuple of " + (partial ? "1 to " : "") +
                 std::to_string(parts) + " values, one per part, found one of " +
                 std::to_string(size));
  }
  for (size_t part = 0; part < size; ++part) {
    values->push_back(ValueOfPart(nb::object(held[part]), codec.parts()[part],
                                  where + ", part " + std::to_string(part + 1)));
  }
  return held;
}

}  // namespace cairn::python
