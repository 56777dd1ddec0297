#include "python/src/groups.h"

#include <nanobind/stl/string.h>

#include <cstdint>

#include "python/src/out/arrays_out.h"

namespace cairn::python {

Column ValuesTable(size_t ranges, const std::vector<std::string>& names,
                   std::shared_ptr<const std::vector<ColumnValues>> values) {
  FoundGroups::Fields fields;
  for (size_t i = 0; i < names.size(); ++i) {
    fields.emplace_back(names[i],
                        ValuesColumnOf(std::shared_ptr<const ColumnValues>(values, &(*values)[i])));
  }
  return Column::Structs(ranges, std::move(fields));
}

Column FoundGroups::ColumnOf(const ColumnValues& values) const {
  return ValuesColumnOf(std::shared_ptr<const ColumnValues>(groups_, &values));
}

nb::object FoundGroups::Offsets() const {
  return ArrayOver(groups_->offsets.data(), groups_->offsets.size(), "uint64", groups_);
}

FoundGroups::Fields FoundGroups::Keys() const {
  Fields fields;
  for (size_t i = 0; i < groups_->keys.size(); ++i) {
    fields.emplace_back("part" + std::to_string(i + 1), ColumnOf(groups_->keys[i]));
  }
  return fields;
}

FoundGroups::Fields FoundGroups::Values() const {
  Fields fields;
  for (size_t i = 0; i < names_.size(); ++i) {
    fields.emplace_back(names_[i], ColumnOf(groups_->values[i]));
  }
  return fields;
}

nb::object FoundGroups::Cursors() const {
  nb::list cursors;
  for (const std::string& cursor : groups_->cursors) {
    cursors.append(nb::bytes(cursor.data(), cursor.size()));
  }
  return cursors;
}

Column FoundGroups::Table() const {
  const size_t groups = groups_->offsets.back();
  auto queries = std::make_shared<std::vector<uint32_t>>();
  queries->reserve(groups);
  for (size_t i = 0; i < size(); ++i) {
    queries->insert(queries->end(), groups_->offsets[i + 1] - groups_->offsets[i],
                    static_cast<uint32_t>(i));
  }
  Fields fields;
  fields.emplace_back("query",
                      Column::Numbers(DataType::kU32, queries->data(), groups, nullptr, queries));
  for (auto& field : Keys()) fields.push_back(std::move(field));
  for (auto& field : Values()) fields.push_back(std::move(field));
  return Column::Structs(groups, std::move(fields));
}

namespace {

nb::dict DictOf(const FoundGroups::Fields& fields) {
  nb::dict dict;
  for (const auto& [name, column] : fields) {
    dict[nb::str(name.data(), name.size())] = nb::cast(column);
  }
  return dict;
}

}  // namespace

void BindGroups(nb::module_& module) {
  nb::class_<FoundGroups>(module, "AggregateGroupsResult",
                          R"doc(The groups of each range of a batch, in key order.

Range i has the groups `offsets[i]` … `offsets[i + 1] - 1`. Arrow takes all groups as a table without a copy,
with one row per group and the columns query, part1, part2 … and the names of the aggregates:
`pyarrow.table(groups)`.)doc")
      .def("__len__", &FoundGroups::size, "The number of ranges.")
      .def("__repr__",
           [](const FoundGroups& groups) {
             return "<cairn.AggregateGroupsResult of " + std::to_string(groups.size()) + " ranges>";
           })
      .def_prop_ro("offsets", &FoundGroups::Offsets,
                   nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.uint64]"),
                   "uint64[ranges + 1]: the start of each range's groups. Read-only, no copy.")
      .def_prop_ro(
          "keys", [](const FoundGroups& groups) { return DictOf(groups.Keys()); },
          nb::sig("def keys(self) -> dict[str, Column]"),
          "Each group's values of the leading parts: part1, part2 …")
      .def_prop_ro(
          "values", [](const FoundGroups& groups) { return DictOf(groups.Values()); },
          nb::sig("def values(self) -> dict[str, Column]"),
          "Each group's aggregates, by their names.")
      .def_prop_ro("cursors", &FoundGroups::Cursors, nb::sig("def cursors(self) -> list[bytes]"),
                   "With a limit: the cursor of each range, for `after=`; empty bytes if it has "
                   "ended.")
      .def(
          "__arrow_c_schema__",
          [](const FoundGroups& groups) { return groups.Table().SchemaCapsule(); },
          nb::sig("def __arrow_c_schema__(self) -> object"))
      .def(
          "__arrow_c_stream__",
          [](const FoundGroups& groups, nb::handle) { return groups.Table().StreamCapsule(); },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"))
      .def(
          "__arrow_c_array__",
          [](const FoundGroups& groups, nb::handle) {
            const Column table = groups.Table();
            return nb::make_tuple(table.SchemaCapsule(), table.ArrayCapsule());
          },
          nb::arg("requested_schema") = nb::none(),
          nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None) -> "
                  "tuple[object, object]"));
}

}  // namespace cairn::python
