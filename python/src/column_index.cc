// The class cairn.ColumnIndex: an index over columns in memory, without a database.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cairn/ordered_index.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/in/arguments.h"
#include "python/src/in/keys_in.h"
#include "python/src/in/values.h"
#include "python/src/queries.h"

namespace cairn::python {
namespace {

// An OrderedIndex as a BatchIndex.
class OrderedBatches final : public BatchIndex {
 public:
  explicit OrderedBatches(std::unique_ptr<OrderedIndex> index) : index_(std::move(index)) {}

  PhysicalType kind() const override { return index_->run().kind(); }
  absl::Status Execute(const Batch& batch) const override { return index_->Execute(batch); }
  absl::Duration PredictedTime(Operation, size_t) const override { return absl::ZeroDuration(); }
  size_t BestBatch(Operation) const override { return 1; }
  const OrderedIndex& index() const { return *index_; }

 private:
  std::unique_ptr<OrderedIndex> index_;
};

class ColumnIndex : public Queries {
 public:
  ColumnIndex(std::unique_ptr<OrderedIndex> index, const KeyCodec& codec)
      : Queries(std::make_shared<OrderedBatches>(std::move(index)), codec, "of columns") {}

  bool is_secondary() const override { return false; }
  std::shared_ptr<const OrderedIndex> OpenOrdered() const {
    const auto open = std::static_pointer_cast<const OrderedBatches>(Open());
    return {open, &open->index()};
  }
};

std::optional<DataType> TypeNamed(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DataType::kBytes); ++i) {
    if (DataTypeName(static_cast<DataType>(i)) == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

// Returns the type of one column of keys, from its contents. Sets `read` to the Arrow data that
// this reads.
DataType TypeOfColumn(nb::handle column, std::unique_ptr<ArrowIn>* read) {
  if (PyRange_Check(column.ptr())) return DataType::kI64;
  if (PyList_Check(column.ptr())) {
    for (nb::handle value : column) {
      if (value.is_none()) continue;
      if (PyUnicode_Check(value.ptr())) return DataType::kText;
      if (PyBytes_Check(value.ptr())) return DataType::kBytes;
      if (PyFloat_Check(value.ptr())) return DataType::kF64;
      if (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr())) return DataType::kI64;
      break;
    }
  } else if (Buffer buffer; buffer.Hold(column)) {
    for (int i = 0; i <= static_cast<int>(DataType::kF64); ++i) {
      if (buffer.IsOf(static_cast<DataType>(i))) return static_cast<DataType>(i);
    }
  } else {
    if (*read == nullptr) *read = ArrowIn::Of(column);
    if (*read != nullptr && (*read)->columns() == 1) {
      if (const auto type = (*read)->TypeOf(0)) return *type;
    }
  }
  ThrowKeyType("keys: expected a column of numbers, text or bytes, found " + Described(column) +
               "; set types= to the type of its values");
}

// Returns the types of the keys' parts. Sets `read` to the Arrow data that this reads, in the form
// that KeysIn takes.
std::vector<DataType> TypesOf(nb::handle keys, std::vector<std::unique_ptr<ArrowIn>>* read) {
  if (PyTuple_Check(keys.ptr())) {
    std::vector<DataType> types;
    for (nb::handle column : keys) {
      types.push_back(TypeOfColumn(column, &read->emplace_back()));
    }
    return types;
  }
  std::unique_ptr<ArrowIn>& arrow = read->emplace_back();
  if (!PyList_Check(keys.ptr()) && !PyObject_CheckBuffer(keys.ptr())) {
    arrow = ArrowIn::Of(keys);
    if (arrow != nullptr && arrow->columns() > 1) {
      std::vector<DataType> types;
      for (size_t i = 0; i < arrow->columns(); ++i) {
        const auto type = arrow->TypeOf(i);
        if (!type.has_value()) {
          ThrowKeyType("keys: column " + std::to_string(i + 1) +
                       " contains neither numbers nor text nor bytes");
        }
        types.push_back(*type);
      }
      return types;
    }
  }
  return {TypeOfColumn(keys, &arrow)};
}

ColumnIndex* FromColumns(nb::handle keys, nb::handle row_ids, TextArg<"structure"> structure_given,
                         Argument<std::optional<std::vector<std::string>>, "types"> types_given,
                         TextArg<"nulls"> nulls_given, ThreadsArg<"threads"> threads_given) {
  const std::string structure = *structure_given, nulls = *nulls_given;
  const std::optional<std::vector<std::string>> types = *types_given;
  const int threads = *threads_given;
  std::vector<DataType> parts;
  std::vector<std::unique_ptr<ArrowIn>> read;
  if (types.has_value()) {
    for (const std::string& name : *types) {
      const auto type = TypeNamed(name);
      if (!type.has_value())
        ThrowInvalid("types: expected u8 … f64, text or bytes, found '" + name + "'");
      parts.push_back(*type);
    }
  } else {
    parts = TypesOf(keys, &read);
  }
  if (nulls != "refuse" && nulls != "first" && nulls != "last") {
    ThrowInvalid("nulls: expected 'refuse', 'first' or 'last', found '" + nulls + "'");
  }
  const KeyCodec codec = ValueOf(KeyCodec::Create(parts, nulls == "refuse"  ? NullPolicy::kSkip
                                                         : nulls == "first" ? NullPolicy::kFirst
                                                                            : NullPolicy::kLast));
  const KeysIn in(keys, codec, "keys", std::move(read));
  std::optional<KeysIn> rows;
  if (!row_ids.is_none()) {
    rows.emplace(row_ids, ValueOf(KeyCodec::Create({DataType::kU32})), "row_ids");
    if (rows->size() != in.size()) {
      ThrowInvalid("row_ids: expected " + std::to_string(in.size()) + ", one per key, found " +
                   std::to_string(rows->size()));
    }
  }
  absl::StatusOr<std::unique_ptr<OrderedIndex>> made = nullptr;
  {
    const GilReleased released;
    const absl::Span<const RowId> ids =
        rows.has_value() ? rows->batch().u32() : absl::Span<const RowId>();
    absl::StatusOr<SortedRun> run;
    switch (codec.kind()) {
      case PhysicalType::kU32:
        run = SortedRun::FromUnsorted(in.batch().u32(), ids, threads);
        break;
      case PhysicalType::kU64:
        run = SortedRun::FromUnsorted(in.batch().u64(), ids, threads);
        break;
      case PhysicalType::kBytes:
        run = SortedRun::FromUnsorted(in.batch().bytes(), ids, threads);
        break;
    }
    made = run.ok() ? MakeOrderedIndex(structure, *std::move(run)) : run.status();
  }
  return new ColumnIndex(ValueOf(std::move(made)), codec);
}

}  // namespace

void BindColumnIndex(nb::module_& module) {
  nb::class_<ColumnIndex, Queries>(
      module, "ColumnIndex",
      R"doc(An index over columns in memory, from cairn.from_columns or cairn.from_arrow.

It has the queries of cairn.Index. Rows are the row ids that it was created with, by default the positions in
the columns. It has no primary keys, no cursors and no routes. Thread-safe.)doc")
      .def(
          "__len__", [](const ColumnIndex& self) { return self.OpenOrdered()->run().size(); },
          "The number of entries.")
      .def("__bool__", [](const ColumnIndex&) { return true; })
      .def("__repr__",
           [](const ColumnIndex& self) {
             std::string types;
             for (const DataType type : self.codec().parts()) {
               types += (types.empty() ? "" : ", ") + std::string(DataTypeName(type));
             }
             return "<cairn.ColumnIndex of " + types + (self.closed() ? ", closed>" : ">");
           })
      .def_prop_ro(
          "structure", [](const ColumnIndex& self) { return self.OpenOrdered()->description(); },
          "The factory string of the search structure, with every parameter.")
      .def_prop_ro(
          "memory_bytes",
          [](const ColumnIndex& self) {
            const auto index = self.OpenOrdered();
            return index->memory_bytes() + index->run().memory_bytes();
          },
          "Bytes of the structure and the sorted columns.")
      .def_prop_ro(
          "kind",
          [](const ColumnIndex& self) {
            return std::string(PhysicalTypeName(self.codec().kind()));
          },
          "The physical form of keys: \"u32\", \"u64\" or \"bytes\".");
  module.def(
      "from_columns", &FromColumns, nb::arg("keys").none(), nb::arg("row_ids") = nb::none(),
      nb::kw_only(), nb::arg("structure") = "cpu:auto", nb::arg("types") = nb::none(),
      nb::arg("nulls") = "refuse", nb::arg("threads") = 0,
      nb::sig("def from_columns(keys: typing.Any, row_ids: typing.Any = None, *, structure: "
              "str = 'cpu:auto', "
              "types: collections.abc.Sequence[str] | None = None, nulls: str = 'refuse', "
              "threads: int = 0) -> ColumnIndex"),
      R"doc(Creates an index over columns of keys, which are given as to cairn.Index. Copies and sorts them.

row_ids: uint32[keys], without cairn.NO_ROW; None: 0, 1, 2 …
structure: the factory string of the search structure.
types: the type of each part; None: the types of the columns (of a list: i64, f64, text or bytes, from its
    first value).
nulls: "first" and "last" keep nulls, before or after all values; "refuse" raises InvalidArgument.)doc");
}

}  // namespace cairn::python
