#include "python/src/in/predicate_in.h"

#include <cstddef>
#include <vector>

#include "cairn/lookup.h"
#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"
#include "python/src/in/values.h"

namespace cairn::python {
namespace {

// Returns the text in which each '?' whose parameter is a tuple of n values, sizes[i], is "(?, ?)"
// with n of them. A size of 0 means a single value.
std::string WithTuples(const std::string& text, const std::vector<size_t>& sizes) {
  std::string expanded;
  size_t parameter = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '?' && parameter < sizes.size() && sizes[parameter++] > 0) {
      expanded += '(';
      for (size_t i = 1; i < sizes[parameter - 1]; ++i) expanded += "?, ";
      expanded += "?)";
      continue;
    }
    expanded += c;
  }
  return expanded;
}

}  // namespace

Predicate PredicateOf(const std::optional<std::string>& where, nb::handle parameters) {
  if (!where.has_value()) {
    if (!parameters.is_none()) ThrowInvalid("parameters: expected none without a predicate");
    return Predicate::All({});
  }
  if (parameters.is_none()) return ValueOf(Predicate::Parse(*where));
  if (!PyList_Check(parameters.ptr()) && !PyTuple_Check(parameters.ptr())) {
    throw PythonError("ArgumentTypeError",
                      "parameters: expected a list or tuple of values, found " +
                          Described(parameters) + "; write [value] for one value");
  }
  // Tuples, which a value's Python code cannot change while it runs.
  const nb::object held = nb::steal(PySequence_Tuple(parameters.ptr()));
  if (!held.is_valid()) throw nb::python_error();
  std::vector<PartValue> values;
  std::vector<size_t> sizes;
  for (nb::handle parameter : held) {
    const std::string name = "parameters[" + std::to_string(sizes.size()) + "]";
    if (PyTuple_Check(parameter.ptr()) == 0) {
      values.emplace_back(ValueOfAnyType(parameter, name));
      sizes.push_back(0);
      continue;
    }
    sizes.push_back(static_cast<size_t>(nb::len(parameter)));
    if (sizes.back() == 0)
      ThrowInvalid(name + ": expected the values of a key's parts, found none");
    size_t part = 0;
    for (nb::handle value : parameter) {
      values.emplace_back(ValueOfAnyType(value, name + ", part " + std::to_string(++part)));
    }
  }
  return ValueOf(Predicate::Parse(WithTuples(*where, sizes), values));
}

}  // namespace cairn::python
