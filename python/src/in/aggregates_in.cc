#include "python/src/in/aggregates_in.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"

namespace cairn::python {
namespace {

AggregateFunction FunctionOf(const std::string& name, const std::string& where) {
  std::string expected;
  for (int f = 0; f <= static_cast<int>(AggregateFunction::kMax); ++f) {
    const auto function = static_cast<AggregateFunction>(f);
    if (name == AggregateFunctionName(function)) return function;
    expected +=
        (expected.empty() ? "'" : ", '") + std::string(AggregateFunctionName(function)) + "'";
  }
  ThrowInvalid(where + ": expected one of " + expected + ", found '" + name + "'");
}

}  // namespace

NamedAggregates AggregatesOf(nb::handle given) {
  if (!PyDict_Check(given.ptr())) {
    throw PythonError(
        "ArgumentTypeError",
        "aggregates: expected a dict of names, as {'total': ('sum', 'price')}, found " +
            Described(given));
  }
  NamedAggregates named;
  for (const auto& [name, value] : nb::borrow<nb::dict>(given)) {
    const std::string where = "aggregates[" + std::string(nb::repr(name).c_str()) + "]";
    if (!PyUnicode_Check(name.ptr())) {
      throw PythonError("ArgumentTypeError", where + ": expected a name that is a str");
    }
    std::vector<std::string> words;
    const bool alone = PyUnicode_Check(value.ptr());
    if (alone) {
      words.push_back(nb::cast<std::string>(value));
    } else if (!nb::try_cast(value, words) || words.empty() || words.size() > 2) {
      ThrowInvalid(where +
                   ": expected a function, as 'count', or one and a column, as "
                   "('sum', 'price'), found " +
                   Described(value));
    }
    named.names.push_back(nb::cast<std::string>(name));
    named.aggregates.push_back(
        {FunctionOf(words[0], where), words.size() == 2 ? words[1] : std::string()});
  }
  return named;
}

}  // namespace cairn::python
