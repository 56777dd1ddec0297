#include "python/src/out/matches.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "python/src/base/errors.h"
#include "python/src/out/arrays_out.h"

namespace cairn::python {

nb::object FoundRows::Offsets() {
  if (!offsets_.is_valid()) {
    offsets_ = ArrayOver(contents_->matches.offsets.data(), contents_->matches.offsets.size(),
                         "uint64", contents_);
  }
  return offsets_;
}

const std::shared_ptr<const std::vector<GlobalRowId>>& FoundRows::WideRows() {
  if (wide_rows_ == nullptr) {
    std::vector<GlobalRowId> rows(contents_->matches.row_ids.size());
    for (size_t j = 0; j < rows.size(); ++j) rows[j] = contents_->matches.row(j);
    wide_rows_ = std::make_shared<const std::vector<GlobalRowId>>(std::move(rows));
  }
  return wide_rows_;
}

nb::object FoundRows::RowIds() {
  if (!row_ids_.is_valid() && wide_) {
    const auto& rows = WideRows();
    row_ids_ = ArrayOver(rows->data(), rows->size(), "uint64", rows);
  }
  if (!row_ids_.is_valid()) {
    row_ids_ = ArrayOver(contents_->matches.row_ids.data(), contents_->matches.row_ids.size(),
                         "uint32", contents_);
  }
  return row_ids_;
}

nb::object FoundRows::RowsOf(Py_ssize_t query) {
  const auto queries = static_cast<Py_ssize_t>(size());
  if (query < -queries || query >= queries) {
    throw PythonError("OutOfRange", "expected a query below " + std::to_string(queries) +
                                        ", found " + std::to_string(query));
  }
  if (query < 0) query += queries;
  const std::vector<uint64_t>& offsets = contents_->matches.offsets;
  return nb::object(
      RowIds()[nb::slice(nb::int_(offsets[query]), nb::int_(offsets[query + 1]), nb::none())]);
}

std::optional<Column> FoundRows::Keys() {
  if (with_keys_ && !keys_.has_value()) {
    keys_ = EncodedKeysOf(codec_, {contents_, &contents_->matches.keys});
  }
  return keys_;
}

std::optional<Column> FoundRows::PrimaryKeys() const {
  if (!with_primary_keys_) return std::nullopt;
  return BinaryColumnOf({contents_, &contents_->primary_keys});
}

std::optional<Column> FoundRows::Values() const {
  if (!with_values_) return std::nullopt;
  return BinaryColumnOf({contents_, &contents_->values});
}

std::vector<std::pair<std::string, Column>> FoundRows::Columns() const {
  std::vector<std::pair<std::string, Column>> columns;
  for (size_t i = 0; i < column_names_.size(); ++i) {
    columns.emplace_back(column_names_[i],
                         ValuesColumnOf({contents_, &contents_->matches.columns[i]}));
  }
  return columns;
}

nb::object FoundRows::Cursors() const {
  nb::list cursors;
  for (const std::string& cursor : contents_->matches.cursors) {
    cursors.append(nb::bytes(cursor.data(), cursor.size()));
  }
  return cursors;
}

Column FoundRows::Table() {
  const FindResult& matches = contents_->matches;
  const size_t rows = matches.row_ids.size();
  auto queries = std::make_shared<std::vector<uint32_t>>();
  queries->reserve(rows);
  for (size_t i = 0; i < matches.size(); ++i) {
    queries->insert(queries->end(), matches.offsets[i + 1] - matches.offsets[i],
                    static_cast<uint32_t>(i));
  }
  std::vector<std::pair<std::string, Column>> fields;
  fields.emplace_back("query",
                      Column::Numbers(DataType::kU32, queries->data(), rows, nullptr, queries));
  fields.emplace_back(
      "row_id",
      wide_ ? Column::Numbers(DataType::kU64, WideRows()->data(), rows, nullptr, WideRows())
            : Column::Numbers(DataType::kU32, matches.row_ids.data(), rows, nullptr, contents_));
  if (auto keys = Keys()) fields.emplace_back("key", *std::move(keys));
  if (auto keys = PrimaryKeys()) fields.emplace_back("primary_key", *std::move(keys));
  for (auto& column : Columns()) fields.push_back(std::move(column));
  if (auto values = Values()) fields.emplace_back("value", *std::move(values));
  return Column::Structs(rows, std::move(fields));
}

void BindMatches(nb::module_& module) {
  nb::class_<FoundRows>(module, "FindResult", R"doc(The rows that each query of a batch found.

Query i has the rows `row_ids[offsets[i]:offsets[i + 1]]`, by (key, primary key), also as `matches[i]`. Arrow
takes all rows as a table without a copy, with one row per match: `pyarrow.table(matches)`,
`polars.DataFrame(matches)`. Its columns are query, row_id and, if requested, key, primary_key, the included
columns and value.)doc")
      .def("__len__", &FoundRows::size, "The number of queries.")
      .def("__getitem__", &FoundRows::RowsOf,
           nb::sig("def __getitem__(self, query: int, /) -> numpy.typing.NDArray[typing.Any]"),
           "The rows of one query. No copy.")
      .def("__repr__",
           [](FoundRows& rows) {
             return "<cairn.FindResult of " + std::to_string(rows.size()) + " queries, " +
                    std::to_string(rows.contents()->matches.row_ids.size()) + " rows>";
           })
      .def_prop_ro("offsets", &FoundRows::Offsets,
                   nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.uint64]"),
                   "uint64[queries + 1]: the start of each query's rows. Read-only, no copy.")
      .def_prop_ro("row_ids", &FoundRows::RowIds,
                   nb::sig("def row_ids(self) -> numpy.typing.NDArray[typing.Any]"),
                   "uint32[rows]: the rows of all queries. Read-only, no copy. For a sharded "
                   "index uint64[rows], copied once at the first use.")
      .def_prop_ro("keys", &FoundRows::Keys,
                   "scan(with_keys=True): the key under which each row was found.")
      .def_prop_ro("primary_keys", &FoundRows::PrimaryKeys, "If requested: each row's primary key.")
      .def_prop_ro(
          "columns",
          [](const FoundRows& rows) {
            nb::dict columns;
            for (auto& [name, column] : rows.Columns()) {
              columns[nb::str(name.data(), name.size())] = nb::cast(column);
            }
            return columns;
          },
          nb::sig("def columns(self) -> dict[str, Column]"),
          "If requested: each row's values in included columns, by the columns' "
          "names.")
      .def_prop_ro("values", &FoundRows::Values, "fetch: each row's value.")
      .def_prop_ro("cursors", &FoundRows::Cursors, nb::sig("def cursors(self) -> list[bytes]"),
                   "scan or fetch with a limit: the cursor of each range, for `after=`; empty "
                   "bytes if the range has ended.")
      .def_prop_ro("stale", &FoundRows::stale,
                   "fetch: the number of dropped entries, whose rows are gone or have another key.")
      .def(
          "__arrow_c_schema__", [](FoundRows& rows) { return rows.Table().SchemaCapsule(); },
          nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_stream__",
          [](FoundRows& rows, nb::handle) { return rows.Table().StreamCapsule(); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"))
      .def(
          "__arrow_c_array__",
          [](FoundRows& rows, nb::handle) {
            const Column table = rows.Table();
            return nb::make_tuple(table.SchemaCapsule(), table.ArrayCapsule());
          },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
                  "tuple[object, object]"));
}

}  // namespace cairn::python
