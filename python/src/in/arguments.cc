#include "python/src/in/arguments.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

[[noreturn]] void WrongType(nb::handle object, const char* name, const std::string& expected,
                            const char* hint = "") {
  throw PythonError("ArgumentTypeError", std::string(name) + ": expected " + expected + ", found " +
                                             Described(object) + hint);
}

// Whether NumPy uses this name for the object's type.
bool IsNumPy(nb::handle object, const char* type) {
  const nb::handle of(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  return of.attr("__module__").equal(nb::str("numpy")) && of.attr("__name__").equal(nb::str(type));
}

// Converts the object to a Python int.
nb::object AsInteger(nb::handle object, const char* name) {
  nb::object number = nb::steal(PyNumber_Index(object.ptr()));
  if (number.is_valid()) return number;
  PyErr_Clear();
  WrongType(object, name, "an integer");
}

[[noreturn]] void OutOfBounds(nb::handle number, const char* name, const std::string& least,
                              const std::string& most) {
  ThrowInvalid(std::string(name) + ": expected an integer from " + least + " to " + most +
               ", found " + nb::str(number).c_str());
}

// The elements of a sequence, as a tuple that no other code can change.
nb::object ElementsOf(nb::handle object, const char* name, const char* expected, const char* hint) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) {
    WrongType(object, name, expected, hint);
  }
  nb::object elements = nb::steal(PySequence_Tuple(object.ptr()));
  if (elements.is_valid()) return elements;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
  PyErr_Clear();
  WrongType(object, name, expected, hint);
}

std::string ElementName(const char* name, size_t i) {
  return std::string(name) + "[" + std::to_string(i) + "]";
}

}  // namespace

bool ReadBool(nb::handle object, const char* name) {
  if (object.ptr() == Py_True) return true;
  if (object.ptr() == Py_False) return false;
  if (!IsNumPy(object, "bool") && !IsNumPy(object, "bool_")) WrongType(object, name, "a bool");
  const int truth = PyObject_IsTrue(object.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

int64_t ReadSigned(nb::handle object, const char* name, int64_t least, int64_t most) {
  const nb::object number = AsInteger(object, name);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || value < least || value > most) {
    OutOfBounds(number, name, std::to_string(least), std::to_string(most));
  }
  return value;
}

uint64_t ReadNatural(nb::handle object, const char* name, uint64_t least, uint64_t most) {
  const nb::object number = AsInteger(object, name);
  const unsigned long long value = PyLong_AsUnsignedLongLong(number.ptr());
  const bool overflow = PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (overflow || value < least || value > most) {
    OutOfBounds(number, name, std::to_string(least), std::to_string(most));
  }
  return value;
}

double ReadFloat(nb::handle object, const char* name) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (number != -1 || PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  WrongType(object, name, "a number");
}

std::string ReadText(nb::handle object, const char* name) {
  if (!PyUnicode_Check(object.ptr())) WrongType(object, name, "a str");
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    ThrowInvalid(std::string(name) +
                 ": expected text that UTF-8 can encode, found a lone surrogate");
  }
  return {text, static_cast<size_t>(size)};
}

std::string ReadBytes(nb::handle object, const char* name) {
  if (!PyBytes_Check(object.ptr())) WrongType(object, name, "bytes");
  const nb::bytes bytes = nb::borrow<nb::bytes>(object);
  return {bytes.c_str(), bytes.size()};
}

std::vector<std::string> ReadNames(nb::handle object, const char* name) {
  const nb::object elements =
      ElementsOf(object, name, "a sequence of names", "; write ['name'] for one name");
  std::vector<std::string> names;
  for (nb::handle element : elements) {
    names.push_back(ReadText(element, ElementName(name, names.size()).c_str()));
  }
  return names;
}

void RequireDistinct(const std::vector<std::string>& names, const char* name) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return;
  ThrowInvalid(std::string(name) + ": expected each name once, found '" + *twice + "' twice");
}

std::vector<int> ReadIntegers(nb::handle object, const char* name) {
  const nb::object elements =
      ElementsOf(object, name, "a sequence of integers", "; write [0] for one integer");
  std::vector<int> integers;
  for (nb::handle element : elements) {
    integers.push_back(static_cast<int>(
        ReadSigned(element, ElementName(name, integers.size()).c_str(),
                   std::numeric_limits<int>::min(), std::numeric_limits<int>::max())));
  }
  return integers;
}

Timeout ArgumentOf<Timeout>::Get(nb::handle object, const char* name) {
  if (object.is_none()) return {};
  const double seconds = ReadFloat(object, name);
  if (!(seconds >= 0)) {
    ThrowInvalid(std::string(name) + ": expected a number of seconds of at least 0, got " +
                 std::to_string(seconds));
  }
  return {absl::Now() + absl::Seconds(seconds)};
}

}  // namespace cairn::python
