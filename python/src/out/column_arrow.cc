// Columns as structures of Arrow's C data interface, and the class cairn.Column.
#include <nanobind/stl/string.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "cairn/c/arrow.h"
#include "python/src/base/errors.h"
#include "python/src/out/column.h"

namespace cairn::python {

// The private_data of exported structures. A child is exported separately, so that a consumer may
// move it away.
struct ColumnExport {
  struct Schema {
    std::string format, name;
    std::vector<ArrowSchema> children;
    std::vector<ArrowSchema*> pointers;
  };
  struct Array {
    Column column;  // keeps the values alive
    std::array<const void*, 3> buffers = {};
    std::vector<ArrowArray> children;
    std::vector<ArrowArray*> pointers;
  };

  static std::string FormatOf(const Column& column) {
    constexpr const char* kNumbers[] = {"C", "S", "I", "L", "c", "s", "i", "l", "f", "g"};
    switch (column.kind()) {
      case Column::Kind::kNumber:
        return kNumbers[static_cast<size_t>(column.type())];
      case Column::Kind::kText:
        return "U";
      case Column::Kind::kBytes:
        return "Z";
      case Column::Kind::kStruct:
        break;
    }
    return "+s";
  }

  template <typename Structure, typename Private>
  static void Release(Structure* structure) {
    auto* held = static_cast<Private*>(structure->private_data);
    for (Structure& child : held->children) {
      if (child.release != nullptr) child.release(&child);
    }
    delete held;
    structure->release = nullptr;
  }

  static void Fill(const Column& column, const std::string& name, ArrowSchema* out) {
    auto held = std::make_unique<Schema>();
    held->format = FormatOf(column);
    held->name = name;
    held->children.resize(column.fields().size());
    for (size_t i = 0; i < column.fields().size(); ++i) {
      Fill(column.fields()[i].second, column.fields()[i].first, &held->children[i]);
      held->pointers.push_back(&held->children[i]);
    }
    *out = {};
    out->format = held->format.c_str();
    out->name = held->name.c_str();
    out->flags = column.validity_ != nullptr ? ARROW_FLAG_NULLABLE : 0;
    out->n_children = static_cast<int64_t>(held->children.size());
    out->children = held->pointers.data();
    out->release = &Release<ArrowSchema, Schema>;
    out->private_data = held.release();
  }

  static void Fill(const Column& column, ArrowArray* out) {
    static constexpr uint64_t kNothing[8] = {};
    auto held = std::make_unique<Array>();
    held->column = column;
    held->children.resize(column.fields().size());
    for (size_t i = 0; i < column.fields().size(); ++i) {
      Fill(column.fields()[i].second, &held->children[i]);
      held->pointers.push_back(&held->children[i]);
    }
    const void* data = column.data_ == nullptr ? kNothing : column.data_;
    held->buffers[0] = column.validity_;
    *out = {};
    switch (column.kind()) {
      case Column::Kind::kStruct:
        out->n_buffers = 1;
        break;
      case Column::Kind::kNumber:
        held->buffers[1] = data;
        out->n_buffers = 2;
        break;
      case Column::Kind::kText:
      case Column::Kind::kBytes:
        held->buffers[1] = column.offsets_;
        held->buffers[2] = data;
        out->n_buffers = 3;
        break;
    }
    out->length = static_cast<int64_t>(column.size());
    out->null_count = column.validity_ == nullptr ? 0 : -1;
    out->buffers = held->buffers.data();
    out->n_children = static_cast<int64_t>(held->children.size());
    out->children = held->pointers.data();
    out->release = &Release<ArrowArray, Array>;
    out->private_data = held.release();
  }

  // A stream of one chunk.
  struct Stream {
    Column column;
    bool given = false;

    static Stream* Of(ArrowArrayStream* stream) {
      return static_cast<Stream*>(stream->private_data);
    }
    static int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
      try {
        Fill(Of(stream)->column, "", out);
        return 0;
      } catch (...) {
        return ENOMEM;
      }
    }
    static int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
      Stream* held = Of(stream);
      *out = {};
      if (std::exchange(held->given, true)) return 0;
      try {
        Fill(held->column, out);
        return 0;
      } catch (...) {
        return ENOMEM;
      }
    }
    static const char* GetLastError(ArrowArrayStream*) { return "out of memory"; }
    static void Release(ArrowArrayStream* stream) {
      delete Of(stream);
      stream->release = nullptr;
    }
  };

  // A capsule that releases the structure if no consumer took it.
  template <typename Structure>
  static nb::object Capsule(std::unique_ptr<Structure> structure, const char* name) {
    PyObject* capsule = PyCapsule_New(structure.get(), name, [](PyObject* self) {
      auto* held = static_cast<Structure*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
      if (held->release != nullptr) held->release(held);
      delete held;
    });
    if (capsule == nullptr) throw nb::python_error();
    structure.release();
    return nb::steal(capsule);
  }
};

nb::object Column::SchemaCapsule() const {
  CheckNames();
  auto schema = std::make_unique<ArrowSchema>();
  ColumnExport::Fill(*this, "", schema.get());
  return ColumnExport::Capsule(std::move(schema), "arrow_schema");
}

nb::object Column::ArrayCapsule() const {
  CheckText();
  auto array = std::make_unique<ArrowArray>();
  ColumnExport::Fill(*this, array.get());
  return ColumnExport::Capsule(std::move(array), "arrow_array");
}

nb::object Column::StreamCapsule() const {
  CheckNames();
  CheckText();
  auto stream = std::make_unique<ArrowArrayStream>();
  *stream = {};
  stream->get_schema = &ColumnExport::Stream::GetSchema;
  stream->get_next = &ColumnExport::Stream::GetNext;
  stream->get_last_error = &ColumnExport::Stream::GetLastError;
  stream->release = &ColumnExport::Stream::Release;
  stream->private_data = new ColumnExport::Stream{*this};
  return ColumnExport::Capsule(std::move(stream), "arrow_array_stream");
}

namespace {

size_t PositionOf(const Column& column, Py_ssize_t i) {
  const auto size = static_cast<Py_ssize_t>(column.size());
  if (i < -size || i >= size) {
    throw PythonError("OutOfRange", "expected a position below " + std::to_string(size) +
                                        ", found " + std::to_string(i));
  }
  return static_cast<size_t>(i < 0 ? i + size : i);
}

}  // namespace

void BindColumn(nb::module_& module) {
  nb::class_<Column>(module, "Column",
                     R"doc(A column of values that Cairn owns: keys, primary keys, rows' values.

Immutable. Arrow takes it without a copy, by the PyCapsule interface: `pyarrow.array(column)`,
`polars.Series(column)`. Indexing and iterating create Python values.)doc")
      .def("__len__", &Column::size)
      .def(
          "__getitem__",
          [](const Column& column, Py_ssize_t i) { return column.Value(PositionOf(column, i)); },
          nb::sig("def __getitem__(self, i: int, /) -> typing.Any"))
      .def("__repr__",
           [](const Column& column) {
             return "<cairn.Column of " + std::to_string(column.size()) + " " + column.TypeName() +
                    ">";
           })
      .def_prop_ro("type", &Column::TypeName, "Arrow's name of the values' type.")
      .def("to_list", &Column::ToList, nb::sig("def to_list(self) -> list[typing.Any]"),
           "The values as Python objects: int, float, str, bytes, a tuple for several parts; None "
           "for null.")
      .def("to_numpy", &Column::ToNumPy,
           nb::sig("def to_numpy(self) -> numpy.typing.NDArray[typing.Any]"),
           "Numbers as a NumPy array over the same memory, read-only. KeyTypeError for text, bytes "
           "and nulls.")
      .def(
          "__array__",
          [](const Column& column, nb::handle dtype, nb::handle copy) {
            nb::object array = column.ToNumPy();
            const bool always = copy.ptr() == Py_True;
            if (dtype.is_none() && !always) return array;
            nb::object made = array.attr("astype")(
                dtype.is_none() ? nb::object(array.attr("dtype")) : nb::borrow(dtype),
                nb::arg("copy") = always);
            if (copy.ptr() == Py_False && !made.is(array)) {
              ThrowInvalid("expected a dtype that needs no copy, " + column.TypeName() +
                           ", found another; omit copy=False");
            }
            return made;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "numpy.typing.NDArray[typing.Any]"))
      .def("as_bytes", &Column::AsBytes,
           "The column with text as bytes (large_binary), which need not be UTF-8. No copy.")
      .def("__arrow_c_schema__", &Column::SchemaCapsule,
           nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_array__",
          [](const Column& column, nb::handle) {
            return nb::make_tuple(column.SchemaCapsule(), column.ArrayCapsule());
          },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
                  "tuple[object, object]"),
          "Arrow's PyCapsule interface. InvalidArgument if text is not UTF-8: see as_bytes().");
}

}  // namespace cairn::python
