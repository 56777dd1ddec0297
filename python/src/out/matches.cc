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
    const std::vector<uint64_t>& offsets = contents_->matches.offsets;
    offsets_ = ArrayOver(DataType::kU64, offsets.data(), offsets.size(), contents_);
  }
  return offsets_;
}

const SharedColumn& FoundRows::Rows() {
  if (!rows_.has_value()) rows_ = SharedColumn::RowIds({contents_, &contents_->matches}, wide_);
  return *rows_;
}

nb::object FoundRows::RowIds() {
  if (!row_ids_.is_valid()) row_ids_ = ToNumPy(Rows());
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

std::optional<SharedColumn> FoundRows::Keys() {
  if (with_keys_ && !keys_.has_value()) {
    keys_ = ValueOf(SharedColumn::Keys(codec_, {contents_, &contents_->matches.keys}));
  }
  return keys_;
}

std::optional<SharedColumn> FoundRows::PrimaryKeys() const {
  if (!with_primary_keys_) return std::nullopt;
  return SharedColumn::Bytes({contents_, &contents_->primary_keys});
}

std::optional<SharedColumn> FoundRows::Values() const {
  if (!with_values_) return std::nullopt;
  return SharedColumn::Bytes({contents_, &contents_->values});
}

Fields FoundRows::Columns() const {
  return SharedColumn::Fields(column_names_, {contents_, &contents_->matches.columns});
}

SharedColumn FoundRows::Table() {
  Fields fields = {{"query", QueriesOf(contents_->matches.offsets)}, {"row_id", Rows()}};
  if (auto keys = Keys()) fields.emplace_back("key", *std::move(keys));
  if (auto keys = PrimaryKeys()) fields.emplace_back("primary_key", *std::move(keys));
  for (Field& column : Columns()) fields.push_back(std::move(column));
  if (auto values = Values()) fields.emplace_back("value", *std::move(values));
  return TableOf(Rows().size(), std::move(fields));
}

void BindMatches(nb::module_& module) {
  nb::class_<FoundRows> matches(module, "FindResult",
                                R"doc(The rows that each query of a batch found.

Query i has the rows `row_ids[offsets[i]:offsets[i + 1]]`, by (key, primary key), also as `matches[i]`. Arrow
takes all rows as a table without a copy, with one row per match: `pyarrow.table(matches)`,
`polars.DataFrame(matches)`. Its columns are query, row_id and, if requested, key, primary_key, the included
columns and value.)doc");
  matches.def("__len__", &FoundRows::size, "The number of queries.")
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
          "columns", [](const FoundRows& rows) { return DictOf(rows.Columns()); },
          nb::sig("def columns(self) -> dict[str, Column]"),
          "If requested: each row's values in included columns, by the columns' "
          "names.")
      .def_prop_ro("values", &FoundRows::Values, "fetch: each row's value.")
      .def_prop_ro("cursors", &FoundRows::Cursors, nb::sig("def cursors(self) -> list[bytes]"),
                   "scan or fetch with a limit: the cursor of each range, for `after=`; empty "
                   "bytes if the range has ended.")
      .def_prop_ro(
          "stale", &FoundRows::stale,
          "fetch: the number of dropped entries, whose rows are gone or have another key.");
  BindTable(matches, /*with_array=*/true);
}

}  // namespace cairn::python
