#include "python/src/out/column.h"

#include <nanobind/stl/string.h>

#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "python/src/base/errors.h"
#include "python/src/in/buffer.h"
#include "python/src/out/arrays_out.h"

namespace cairn::python {
namespace {

bool IsNumbers(const SharedColumn& column) {
  return column.kind() == SharedColumn::Kind::kValues && !IsText(column.type());
}

// Arrow's name of the type.
std::string TypeName(const SharedColumn& column) {
  if (column.kind() == SharedColumn::Kind::kValues) {
    // As pyarrow has them.
    if (column.type() == DataType::kF32) return "float";
    if (column.type() == DataType::kF64) return "double";
    return ArrowTypeName(ArrowFormat(column.type()));
  }
  std::string name = "struct<";
  for (const auto& [field, values] : column.fields()) {
    if (name.back() != '<') name += ", ";
    name += field + ": " + TypeName(values);
  }
  return name + ">";
}

nb::object ToList(const SharedColumn& column) {
  nb::list values;
  for (size_t i = 0; i < column.size(); ++i) values.append(ValueAt(column, i));
  return values;
}

// A capsule that releases the structure if no consumer took it.
template <typename Structure>
nb::object Capsule(std::unique_ptr<Structure> structure, const char* name) {
  PyObject* capsule = PyCapsule_New(structure.get(), name, [](PyObject* self) {
    auto* held = static_cast<Structure*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (held->release != nullptr) held->release(held);
    delete held;
  });
  if (capsule == nullptr) {
    structure->release(structure.get());
    throw nb::python_error();
  }
  structure.release();
  return nb::steal(capsule);
}

template <typename Structure>
nb::object Exported(const SharedColumn& column, const char* name) {
  auto structure = std::make_unique<Structure>();
  Check(column.Export(structure.get()));
  return Capsule(std::move(structure), name);
}

size_t PositionOf(const SharedColumn& column, Py_ssize_t i) {
  const auto size = static_cast<Py_ssize_t>(column.size());
  if (i < -size || i >= size) {
    throw PythonError("OutOfRange", "expected a position below " + std::to_string(size) +
                                        ", found " + std::to_string(i));
  }
  return static_cast<size_t>(i < 0 ? i + size : i);
}

}  // namespace

SharedColumn TableOf(size_t rows, Fields fields) {
  std::set<std::string_view> names;
  for (const auto& [name, column] : fields) {
    if (names.insert(name).second) continue;
    ThrowInvalid("expected columns of different names, found '" + name +
                 "' twice; read them one by one, or rename the aggregate");
  }
  return SharedColumn::Structs(rows, std::move(fields));
}

nb::dict DictOf(const Fields& fields) {
  nb::dict dict;
  for (const auto& [name, column] : fields) {
    dict[nb::str(name.data(), name.size())] = nb::cast(column);
  }
  return dict;
}

SharedColumn QueriesOf(const std::vector<uint64_t>& offsets) {
  auto queries = std::make_shared<std::vector<uint32_t>>();
  queries->reserve(offsets.empty() ? 0 : offsets.back());
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    queries->insert(queries->end(), offsets[i + 1] - offsets[i], static_cast<uint32_t>(i));
  }
  return SharedColumn::Numbers(DataType::kU32, queries->data(), queries->size(), queries);
}

nb::list BytesOf(const std::vector<std::string>& strings) {
  nb::list list;
  for (const std::string& string : strings) list.append(nb::bytes(string.data(), string.size()));
  return list;
}

nb::object ValueAt(const SharedColumn& column, size_t i) {
  if (column.kind() == SharedColumn::Kind::kStructs) {
    nb::list values;
    for (const Field& field : column.fields()) values.append(ValueAt(field.second, i));
    return nb::steal(PySequence_Tuple(values.ptr()));
  }
  if (column.is_null(i)) return nb::none();
  if (IsNumbers(column)) {
    return std::visit(
        [i](const auto& numbers) -> nb::object {
          using T = typename std::decay_t<decltype(numbers)>::value_type;
          if constexpr (std::is_floating_point_v<T>) {
            return nb::float_(static_cast<double>(numbers[i]));
          } else if constexpr (std::is_integral_v<T>) {
            return nb::int_(numbers[i]);
          } else {
            return nb::none();
          }
        },
        ColumnSpan::OfNumbers(column.type(), column.data(), column.size()).values);
  }
  const std::string_view bytes = column.string(i);
  if (column.type() == DataType::kBytes) return nb::bytes(bytes.data(), bytes.size());
  PyObject* text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "strict");
  if (text == nullptr) {
    PyErr_Clear();
    ThrowInvalid("value " + std::to_string(i) +
                 " of the column is text that is not UTF-8; as_bytes() returns it as bytes");
  }
  return nb::steal(text);
}

nb::object ToNumPy(const SharedColumn& column) {
  if (!IsNumbers(column)) {
    ThrowKeyType("expected a column of numbers, found one of " + TypeName(column) +
                 "; convert with pyarrow.array() or to_list()");
  }
  if (column.null_count() > 0) {
    ThrowKeyType(
        "expected a column of numbers, found one with nulls, which NumPy does not support; "
        "convert with pyarrow.array() or to_list()");
  }
  return ArrayOver(column.type(), column.data(), column.size(), column.owner());
}

nb::object SchemaCapsule(const SharedColumn& column) {
  return Exported<ArrowSchema>(column, "arrow_schema");
}

nb::object ArrayCapsule(const SharedColumn& column) {
  return Exported<ArrowArray>(column, "arrow_array");
}

nb::object StreamCapsule(const SharedColumn& column) {
  return Exported<ArrowArrayStream>(column, "arrow_array_stream");
}

nb::tuple ArrayCapsules(const SharedColumn& column) {
  return nb::make_tuple(SchemaCapsule(column), ArrayCapsule(column));
}

void BindColumn(nb::module_& module) {
  nb::class_<SharedColumn>(
      module, "Column",
      R"doc(A column of values that Cairn owns: keys, primary keys, rows' values.

Immutable. Arrow takes it without a copy, by the PyCapsule interface: `pyarrow.array(column)`,
`polars.Series(column)`. Indexing and iterating create Python values.)doc")
      .def("__len__", &SharedColumn::size)
      .def(
          "__getitem__",
          [](const SharedColumn& column, Py_ssize_t i) {
            return ValueAt(column, PositionOf(column, i));
          },
          nb::sig("def __getitem__(self, i: int, /) -> typing.Any"))
      .def("__repr__",
           [](const SharedColumn& column) {
             return "<cairn.Column of " + std::to_string(column.size()) + " " + TypeName(column) +
                    ">";
           })
      .def_prop_ro("type", &TypeName, "Arrow's name of the values' type.")
      .def("to_list", &ToList, nb::sig("def to_list(self) -> list[typing.Any]"),
           "The values as Python objects: int, float, str, bytes, a tuple for several parts; None "
           "for null.")
      .def("to_numpy", &ToNumPy, nb::sig("def to_numpy(self) -> numpy.typing.NDArray[typing.Any]"),
           "Numbers as a NumPy array over the same memory, read-only. KeyTypeError for text, bytes "
           "and nulls.")
      .def(
          "__array__",
          [](const SharedColumn& column, nb::handle dtype, nb::handle copy) {
            nb::object array = ToNumPy(column);
            const bool always = copy.ptr() == Py_True;
            if (dtype.is_none() && !always) return array;
            nb::object made = array.attr("astype")(
                dtype.is_none() ? nb::object(array.attr("dtype")) : nb::borrow(dtype),
                nb::arg("copy") = always);
            if (copy.ptr() == Py_False && !made.is(array)) {
              ThrowInvalid("expected a dtype that needs no copy, " + TypeName(column) +
                           ", found another; omit copy=False");
            }
            return made;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "numpy.typing.NDArray[typing.Any]"))
      .def("as_bytes", &SharedColumn::AsBytes,
           "The column with text as bytes (large_binary), which need not be UTF-8. No copy.")
      .def("__arrow_c_schema__", &SchemaCapsule, nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_array__",
          [](const SharedColumn& column, nb::handle) { return ArrayCapsules(column); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
                  "tuple[object, object]"),
          "Arrow's PyCapsule interface. InvalidArgument if text is not UTF-8: see as_bytes().");
}

}  // namespace cairn::python
