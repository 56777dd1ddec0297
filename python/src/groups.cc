#include "python/src/groups.h"

#include <nanobind/stl/string.h>

#include <cstdint>

#include "python/src/out/arrays_out.h"

namespace cairn::python {

nb::object FoundGroups::Offsets() const {
  return ArrayOver(DataType::kU64, groups_->offsets.data(), groups_->offsets.size(), groups_);
}

Fields FoundGroups::Keys() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < groups_->keys.size(); ++i) names.push_back("part" + std::to_string(i + 1));
  return SharedColumn::Fields(names, {groups_, &groups_->keys});
}

Fields FoundGroups::Values() const {
  return SharedColumn::Fields(names_, {groups_, &groups_->values});
}

SharedColumn FoundGroups::Table() const {
  Fields fields = {{"query", QueriesOf(groups_->offsets)}};
  for (Field& field : Keys()) fields.push_back(std::move(field));
  for (Field& field : Values()) fields.push_back(std::move(field));
  return TableOf(groups_->offsets.back(), std::move(fields));
}

void BindGroups(nb::module_& module) {
  nb::class_<FoundGroups> groups(module, "AggregateGroupsResult",
                                 R"doc(The groups of each range of a batch, in key order.

Range i has the groups `offsets[i]` … `offsets[i + 1] - 1`. Arrow takes all groups as a table without a copy,
with one row per group and the columns query, part1, part2 … and the names of the aggregates:
`pyarrow.table(groups)`.)doc");
  groups.def("__len__", &FoundGroups::size, "The number of ranges.")
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
                   "ended.");
  BindTable(groups, /*with_array=*/true);
}

}  // namespace cairn::python
