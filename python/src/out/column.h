#pragma once

// The class cairn.Column: columns of values that Cairn passes to Python without a copy.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cairn/internal/shared_column.h"

namespace cairn::python {

namespace nb = nanobind;

using Field = SharedColumn::Field;
using Fields = std::vector<Field>;

// The fields as one table of `rows` rows. Throws InvalidArgument if a name occurs twice.
SharedColumn TableOf(size_t rows, Fields fields);
// The columns by name.
nb::dict DictOf(const Fields& fields);
// A column of uint32 for a table: i for the rows [offsets[i], offsets[i + 1]).
SharedColumn QueriesOf(const std::vector<uint64_t>& offsets);
// A list of bytes.
nb::list BytesOf(const std::vector<std::string>& strings);

// Value i as a Python object; requires i < size().
nb::object ValueAt(const SharedColumn& column, size_t i);
// Returns a NumPy array over numbers. Throws KeyTypeError for strings or if there are nulls.
nb::object ToNumPy(const SharedColumn& column);

// Capsules of ArrowSchema, ArrowArray and ArrowArrayStream. Throw InvalidArgument if text is not
// UTF-8, or a name has a zero byte.
nb::object SchemaCapsule(const SharedColumn& column);
nb::object ArrayCapsule(const SharedColumn& column);
nb::object StreamCapsule(const SharedColumn& column);
// The capsules of the schema and the array.
nb::tuple ArrayCapsules(const SharedColumn& column);

// Adds Arrow's PyCapsule interface to a class with a method Table().
template <typename Class>
void BindTable(nb::class_<Class>& bound, bool with_array = false) {
  bound
      .def(
          "__arrow_c_schema__", [](Class& self) { return SchemaCapsule(self.Table()); },
          nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_stream__", [](Class& self, nb::handle) { return StreamCapsule(self.Table()); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig(
              "def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"));
  if (!with_array) return;
  bound.def(
      "__arrow_c_array__", [](Class& self, nb::handle) { return ArrayCapsules(self.Table()); },
      nb::arg("requested_schema") = nb::none(),
      nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
              "tuple[object, object]"));
}

void BindColumn(nb::module_& module);

}  // namespace cairn::python
