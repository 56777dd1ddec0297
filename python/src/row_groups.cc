#include "python/src/row_groups.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "python/src/out/arrays_out.h"

namespace cairn::python {

Column FoundRowGroups::ColumnOf(const ColumnValues& values) const {
  return ValuesColumnOf(std::shared_ptr<const ColumnValues>(groups_, &values));
}

nb::dict FoundRowGroups::Keys() const {
  nb::dict keys;
  for (size_t i = 0; i < groups_->keys.size(); ++i) {
    const std::string& name = names_[i];
    keys[nb::str(name.data(), name.size())] = nb::cast(ColumnOf(groups_->keys[i]));
  }
  return keys;
}

nb::dict FoundRowGroups::Values() const {
  nb::dict values;
  for (size_t i = 0; i < groups_->values.size(); ++i) {
    const std::string& name = names_[groups_->keys.size() + i];
    values[nb::str(name.data(), name.size())] = nb::cast(ColumnOf(groups_->values[i]));
  }
  return values;
}

Column FoundRowGroups::Table() const {
  std::vector<std::pair<std::string, Column>> fields;
  for (const ColumnValues& key : groups_->keys) {
    fields.emplace_back(names_[fields.size()], ColumnOf(key));
  }
  for (const ColumnValues& value : groups_->values) {
    fields.emplace_back(names_[fields.size()], ColumnOf(value));
  }
  return Column::Structs(groups_->size, std::move(fields));
}

void BindRowGroups(nb::module_& module) {
  nb::class_<FoundRowGroups>(
      module, "GroupByResult",
      R"doc(Groups of the rows for which a predicate is true, and their aggregates.

Arrow takes them as a table without a copy, with one row per group: `pyarrow.table(groups)`. Its columns are
the group_by columns and the aggregates by their names.)doc")
      .def(
          "__len__", [](const FoundRowGroups& found) { return found.groups().size; },
          "The number of groups.")
      .def("__repr__",
           [](const FoundRowGroups& found) {
             return "<cairn.GroupByResult: " + std::to_string(found.groups().size) + " groups of " +
                    std::to_string(found.groups().rows) + " rows>";
           })
      .def_prop_ro("keys", &FoundRowGroups::Keys, nb::sig("def keys(self) -> dict[str, Column]"),
                   "Each group's values in the group_by columns.")
      .def_prop_ro("values", &FoundRowGroups::Values,
                   nb::sig("def values(self) -> dict[str, Column]"),
                   "Each group's aggregates, by their names.")
      .def_prop_ro(
          "rows", [](const FoundRowGroups& found) { return found.groups().rows; },
          "The number of rows for which the predicate is true.")
      .def_prop_ro(
          "cursor",
          [](const FoundRowGroups& found) {
            const std::string& cursor = found.groups().cursor;
            return nb::bytes(cursor.data(), cursor.size());
          },
          "The cursor of the next page, for `after=`; empty bytes if there is none.")
      .def_prop_ro(
          "plan", [](const FoundRowGroups& found) { return found.groups().plan.ToString(); },
          "How the rows were found, as human-readable text.")
      .def(
          "__arrow_c_schema__",
          [](const FoundRowGroups& found) { return found.Table().SchemaCapsule(); },
          nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_stream__",
          [](const FoundRowGroups& found, nb::handle) { return found.Table().StreamCapsule(); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> "
                  "object"));
}

}  // namespace cairn::python
