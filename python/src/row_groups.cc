#include "python/src/row_groups.h"

#include <nanobind/stl/string.h>

#include <utility>

namespace cairn::python {

Fields FoundRowGroups::Keys() const {
  return SharedColumn::Fields(names_, {groups_, &groups_->keys});
}

Fields FoundRowGroups::Values() const {
  return SharedColumn::Fields(absl::MakeConstSpan(names_).subspan(groups_->keys.size()),
                              {groups_, &groups_->values});
}

SharedColumn FoundRowGroups::Table() const {
  Fields fields = Keys();
  for (Field& field : Values()) fields.push_back(std::move(field));
  return TableOf(groups_->size, std::move(fields));
}

void BindRowGroups(nb::module_& module) {
  nb::class_<FoundRowGroups> groups(
      module, "GroupByResult",
      R"doc(Groups of the rows for which a predicate is true, and their aggregates.

Arrow takes them as a table without a copy, with one row per group: `pyarrow.table(groups)`. Its columns are
the group_by columns and the aggregates by their names.)doc");
  groups
      .def(
          "__len__", [](const FoundRowGroups& found) { return found.groups().size; },
          "The number of groups.")
      .def("__repr__",
           [](const FoundRowGroups& found) {
             return "<cairn.GroupByResult: " + std::to_string(found.groups().size) + " groups of " +
                    std::to_string(found.groups().rows) + " rows>";
           })
      .def_prop_ro(
          "keys", [](const FoundRowGroups& found) { return DictOf(found.Keys()); },
          nb::sig("def keys(self) -> dict[str, Column]"),
          "Each group's values in the group_by columns.")
      .def_prop_ro(
          "values", [](const FoundRowGroups& found) { return DictOf(found.Values()); },
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
          "How the rows were found, as human-readable text.");
  BindTable(groups);
}

}  // namespace cairn::python
