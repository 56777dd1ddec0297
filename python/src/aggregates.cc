#include "python/src/aggregates.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/columns/aggregate.h"
#include "cairn/secondary_index.h"
#include "python/src/base/errors.h"
#include "python/src/in/aggregates_in.h"
#include "python/src/in/ranges_in.h"
#include "python/src/out/arrays_out.h"
#include "python/src/out/column.h"

namespace cairn::python {
namespace {

using Fields = std::vector<std::pair<std::string, Column>>;

Column AggregateRanges(const Index& self, nb::handle aggregates, const RangeArguments& arguments) {
  const auto index = self.OpenSecondary();
  const NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.codec());
  auto values = std::make_shared<std::vector<ColumnValues>>();
  absl::Status status;
  {
    const nb::gil_scoped_release released;
    status = index->AggregateRanges(in.batch(), named.aggregates, values.get());
  }
  Check(status);
  Fields fields;
  for (size_t i = 0; i < named.names.size(); ++i) {
    fields.emplace_back(named.names[i],
                        ValuesColumnOf(std::shared_ptr<const ColumnValues>(values, &(*values)[i])));
  }
  return Column::Structs(in.batch().size(), std::move(fields));
}

// The groups of each range of a batch. Immutable once it is in Python.
class FoundGroups {
 public:
  FoundGroups(std::shared_ptr<const Groups> groups, std::vector<std::string> names)
      : groups_(std::move(groups)), names_(std::move(names)) {}

  size_t size() const { return groups_->size(); }
  nb::object Offsets() const {
    return ArrayOver(groups_->offsets.data(), groups_->offsets.size(), "uint64", groups_);
  }
  Fields Keys() const {
    Fields fields;
    for (size_t i = 0; i < groups_->keys.size(); ++i) {
      fields.emplace_back("part" + std::to_string(i + 1), ColumnOf(groups_->keys[i]));
    }
    return fields;
  }
  Fields Values() const {
    Fields fields;
    for (size_t i = 0; i < names_.size(); ++i) {
      fields.emplace_back(names_[i], ColumnOf(groups_->values[i]));
    }
    return fields;
  }
  nb::object Cursors() const {
    nb::list cursors;
    for (const std::string& cursor : groups_->cursors) {
      cursors.append(nb::bytes(cursor.data(), cursor.size()));
    }
    return cursors;
  }
  // A struct of each group: query, part1 …, and the aggregates.
  Column Table() const {
    const size_t groups = groups_->offsets.back();
    auto queries = std::make_shared<std::vector<uint32_t>>();
    queries->reserve(groups);
    for (size_t i = 0; i < size(); ++i) {
      queries->insert(queries->end(), groups_->offsets[i + 1] - groups_->offsets[i],
                      static_cast<uint32_t>(i));
    }
    Fields fields;
    fields.emplace_back("query",
                        Column::Numbers(KeyType::kU32, queries->data(), groups, nullptr, queries));
    for (auto& field : Keys()) fields.push_back(std::move(field));
    for (auto& field : Values()) fields.push_back(std::move(field));
    return Column::Structs(groups, std::move(fields));
  }

 private:
  Column ColumnOf(const ColumnValues& values) const {
    return ValuesColumnOf(std::shared_ptr<const ColumnValues>(groups_, &values));
  }

  const std::shared_ptr<const Groups> groups_;
  const std::vector<std::string> names_;
};

FoundGroups GroupBy(const Index& self, size_t parts, nb::handle aggregates,
                    const RangeArguments& arguments, std::optional<uint64_t> limit) {
  const auto index = self.OpenSecondary();
  NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.codec());
  GroupOptions options;
  if (limit.has_value()) options.limit = *limit;
  auto groups = std::make_shared<Groups>();
  absl::Status status;
  {
    const nb::gil_scoped_release released;
    status = index->AggregateGroups(in.batch(), parts, named.aggregates, options, groups.get());
  }
  Check(status);
  return FoundGroups(std::move(groups), std::move(named.names));
}

nb::dict DictOf(const Fields& fields) {
  nb::dict dict;
  for (const auto& [name, column] : fields) dict[name.c_str()] = nb::cast(column);
  return dict;
}

void BindGroups(nb::module_& module) {
  nb::class_<FoundGroups>(module, "Groups",
                          R"doc(The groups of each range of a batch, in the order of keys.

Range i's are `offsets[i]` … `offsets[i + 1] - 1`. Arrow takes all as a table without a copy, one row a
group, with the columns query, part1, part2 … and the aggregates by their names: `pyarrow.table(groups)`.)doc")
      .def("__len__", &FoundGroups::size, "The number of ranges.")
      .def("__repr__",
           [](const FoundGroups& groups) {
             return "<cairn.Groups of " + std::to_string(groups.size()) + " ranges>";
           })
      .def_prop_ro("offsets", &FoundGroups::Offsets,
                   nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.uint64]"),
                   "uint64[ranges + 1]: where each range's groups begin. Read-only, no copy.")
      .def_prop_ro(
          "keys", [](const FoundGroups& groups) { return DictOf(groups.Keys()); },
          nb::sig("def keys(self) -> dict[str, Column]"),
          "Each group's values of the leading parts: part1, part2 …")
      .def_prop_ro(
          "values", [](const FoundGroups& groups) { return DictOf(groups.Values()); },
          nb::sig("def values(self) -> dict[str, Column]"),
          "Each group's aggregates, by their names.")
      .def_prop_ro("cursors", &FoundGroups::Cursors, nb::sig("def cursors(self) -> list[bytes]"),
                   "With a limit: for `after=`, where each range goes on; empty bytes where it has "
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

}  // namespace

#define CAIRN_AGGREGATE_RANGES                                                                   \
  nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(), nb::kw_only(),                   \
  nb::arg("keys") = nb::none(), nb::arg("prefix") = nb::none(), nb::arg("leading") = nb::none(), \
  nb::arg("bounds") = "[)"
#define CAIRN_AGGREGATE_RANGES_SIG                                                               \
  "aggregates: collections.abc.Mapping[str, str | collections.abc.Sequence[str]], lower: "       \
  "typing.Any = None, upper: typing.Any = None, *, keys: typing.Any = None, prefix: typing.Any " \
  "= None, leading: typing.Any = None, bounds: str = '[)'"

void BindAggregates(nb::module_& module, nb::class_<Index, Queries>& index) {
  BindGroups(module);
  index
      .def(
          "aggregate",
          [](const Index& self, nb::handle aggregates, nb::handle lower, nb::handle upper,
             nb::handle keys, nb::handle prefix, nb::handle leading, const char* bounds) {
            return AggregateRanges(self, aggregates,
                                   {lower, upper, keys, prefix, leading, bounds, nb::none()});
          },
          nb::arg("aggregates").none(), CAIRN_AGGREGATE_RANGES,
          nb::sig("def aggregate(self, " CAIRN_AGGREGATE_RANGES_SIG ") -> Column"),
          R"doc(Aggregates of each range: a column of structs, one field an aggregate, one row a range.

    index.aggregate({"rows": "count", "total": ("sum", "price")}, keys=["de", "fr"])

Functions: "count" of entries or of a column's values, "count_distinct" of the keys, "sum", "avg", "min",
"max" of a column that the index includes, "include(…)" in its spec. Ranges are given as to count; none is
all of the index. It takes as long for a million entries as for one. A row counts once for each key that it
has there. Nulls are passed over; the sum, mean, least and greatest of none are null. OutOfRange for a sum
of integers that does not fit 64 bits.)doc")
      .def(
          "group_by",
          [](const Index& self, size_t parts, nb::handle aggregates, nb::handle lower,
             nb::handle upper, nb::handle keys, nb::handle prefix, nb::handle leading,
             const char* bounds, std::optional<uint64_t> limit, nb::handle after) {
            return GroupBy(self, parts, aggregates,
                           {lower, upper, keys, prefix, leading, bounds, after}, limit);
          },
          nb::arg("parts"), nb::arg("aggregates").none(), CAIRN_AGGREGATE_RANGES,
          nb::arg("limit") = nb::none(), nb::arg("after") = nb::none(),
          nb::sig("def group_by(self, parts: int, " CAIRN_AGGREGATE_RANGES_SIG
                  ", limit: int | None = None, after: collections.abc.Sequence[bytes] | None = "
                  "None) -> Groups"),
          R"doc(The same of each range's groups: of its entries with the same values in the first `parts` parts of the key.

With a `limit`, at most so many groups a range; `after` takes the `cursors` of the call before, and goes on.)doc");
}

}  // namespace cairn::python
