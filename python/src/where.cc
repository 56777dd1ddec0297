// The class cairn.IndexGroup, predicates over several indexes, and cairn.WhereResult.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/index_group.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/bindings.h"
#include "python/src/in/aggregates_in.h"
#include "python/src/in/arguments.h"
#include "python/src/in/buffer.h"
#include "python/src/in/predicate_in.h"
#include "python/src/index.h"
#include "python/src/out/column.h"
#include "python/src/row_groups.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

// Rows found for a predicate. Immutable once Python has it.
struct FoundWhere {
  struct Contents {
    WhereResult matches;
    StringList primary_keys;
  };

  size_t size() const { return contents->matches.row_ids.size(); }
  SharedColumn PrimaryKeys() const {
    return SharedColumn::Bytes({contents, &contents->primary_keys});
  }
  Fields Columns() const {
    return SharedColumn::Fields(names, {contents, &contents->matches.columns});
  }
  // A struct per row: row_id, primary_key, included columns.
  SharedColumn Table() const {
    Fields fields = {{"row_id", row_ids}, {"primary_key", PrimaryKeys()}};
    for (Field& column : Columns()) fields.push_back(std::move(column));
    return TableOf(size(), std::move(fields));
  }

  std::shared_ptr<Contents> contents = std::make_shared<Contents>();
  SharedColumn row_ids;
  std::vector<std::string> names;  // of the included columns
};

WhereStrategy StrategyOf(const std::string& name) {
  std::string expected;
  for (const WhereStrategy strategy :
       {WhereStrategy::kAuto, WhereStrategy::kGather, WhereStrategy::kBitmap, WhereStrategy::kScan,
        WhereStrategy::kWalk}) {
    if (name == WhereStrategyName(strategy)) return strategy;
    expected += (expected.empty() ? "'" : ", '") + std::string(WhereStrategyName(strategy)) + "'";
  }
  ThrowInvalid("strategy: expected one of " + expected + ", found '" + name + "'");
}

class Group {
 public:
  using Where = Argument<std::optional<std::string>, "where">;
  using OrderBy = Argument<std::optional<std::string>, "order_by">;
  using Strategy = TextArg<"strategy">;

  // Creates a group from indexes, or from a mapping from names to indexes.
  static Group Of(nb::handle indexes) {
    std::vector<IndexGroup::Member> members;
    if (nb::isinstance<nb::dict>(indexes)) {
      for (const auto& [name, index] : nb::cast<nb::dict>(indexes)) {
        const std::string text = ReadText(name, "indexes: a name");
        members.push_back({IndexOf(index, "indexes['" + text + "']").OpenSecondary(), text});
      }
    } else {
      const nb::object elements = nb::steal(PySequence_Tuple(indexes.ptr()));
      if (PyUnicode_Check(indexes.ptr()) || !elements.is_valid()) {
        if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) {
          throw nb::python_error();
        }
        PyErr_Clear();
        throw PythonError("ArgumentTypeError",
                          "indexes: expected a sequence of cairn.Index, or a dict from names to "
                          "these, found " +
                              Described(indexes));
      }
      for (nb::handle index : elements) {
        const std::string argument = "indexes[" + std::to_string(members.size()) + "]";
        members.push_back({IndexOf(index, argument).OpenSecondary()});
      }
    }
    absl::StatusOr<std::shared_ptr<const IndexGroup>> group = nullptr;
    {
      const GilReleased released;
      group = IndexGroup::Create(std::move(members));
    }
    return Group(ValueOf(std::move(group)));
  }

  uint64_t Count(Where where, nb::handle parameters, Strategy strategy, TimeoutArg timeout) const {
    const Predicate predicate = PredicateOf(where, parameters);
    WhereOptions options;
    options.strategy = StrategyOf(*strategy);
    options.deadline = (*timeout).deadline;
    uint64_t count = 0;
    RunQuery([&](const std::atomic<bool>* cancelled) {
      options.cancelled = cancelled;
      const absl::StatusOr<uint64_t> counted = group_->Count(predicate, options);
      if (counted.ok()) count = *counted;
      return counted.status();
    });
    return count;
  }

  FoundWhere Find(Where where, nb::handle parameters, OrderBy order_by,
                  BoolArg<"descending"> descending, LimitArg<"limit"> limit, nb::handle after,
                  NamesArg<"columns"> columns, Strategy strategy, TimeoutArg timeout) const {
    const Predicate predicate = PredicateOf(where, parameters);
    WhereOptions options = Options(order_by, limit, strategy);
    options.order = *descending ? Order::kDescending : Order::kAscending;
    options.after = ReadBytes(after, "after");
    options.columns = *columns;
    options.deadline = (*timeout).deadline;
    RequireDistinct(options.columns, "columns");
    FoundWhere found;
    found.names = options.columns;
    RunQuery([&](const std::atomic<bool>* cancelled) {
      options.cancelled = cancelled;
      FoundWhere::Contents& contents = *found.contents;
      absl::Status status = group_->Find(predicate, options, &contents.matches);
      if (status.ok()) status = group_->PrimaryKeys(contents.matches, &contents.primary_keys);
      if (status.ok()) {
        found.row_ids =
            SharedColumn::RowIds({found.contents, &contents.matches}, group_->in_shards());
      }
      return status;
    });
    return found;
  }

  FoundRowGroups Aggregate(nb::handle aggregates, Where where, nb::handle parameters,
                           NamesArg<"group_by"> group_by, NamesArg<"order_by"> order_by,
                           LimitArg<"limit"> given_limit, nb::handle after, Strategy strategy,
                           TimeoutArg timeout) const {
    NamedAggregates named = AggregatesOf(aggregates);
    const Predicate predicate = PredicateOf(where, parameters);
    GroupByOptions options;
    options.group_by = *group_by;
    RequireDistinct(options.group_by, "group_by");
    std::vector<std::string> names = options.group_by;
    names.insert(names.end(), named.names.begin(), named.names.end());
    RequireDistinct(names, "group_by and the names of aggregates");
    options.order_by = ValueOf(ParseGroupOrder(*order_by, names));
    const std::optional<Limit> limit = *given_limit;
    if (limit.has_value()) options.limit = limit->most;
    options.after = ReadBytes(after, "after");
    options.strategy = StrategyOf(*strategy);
    options.deadline = (*timeout).deadline;
    auto groups = std::make_shared<GroupByResult>();
    RunQuery([&](const std::atomic<bool>* cancelled) {
      options.cancelled = cancelled;
      return group_->GroupBy(predicate, named.aggregates, options, groups.get());
    });
    return FoundRowGroups(std::move(groups), std::move(names));
  }

  std::string Explain(Where where, nb::handle parameters, OrderBy order_by, LimitArg<"limit"> limit,
                      Strategy strategy) const {
    const Predicate predicate = PredicateOf(where, parameters);
    const WhereOptions options = Options(order_by, limit, strategy);
    return ValueOf(group_->Explain(predicate, options)).ToString();
  }

  bool in_shards() const { return group_->in_shards(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const IndexGroup::Member& member : group_->members()) names.push_back(member.name);
    return names;
  }

 private:
  explicit Group(std::shared_ptr<const IndexGroup> group) : group_(std::move(group)) {}

  static WhereOptions Options(OrderBy order_by, LimitArg<"limit"> given_limit, Strategy strategy) {
    WhereOptions options;
    options.order_by = (*order_by).value_or("");
    const std::optional<Limit> limit = *given_limit;
    if (limit.has_value()) options.limit = limit->most;
    options.strategy = StrategyOf(*strategy);
    return options;
  }

  std::shared_ptr<const IndexGroup> group_;
};

void BindFoundWhere(nb::module_& module) {
  nb::class_<FoundWhere> rows(module, "WhereResult", R"doc(The rows for which a predicate is true.

Arrow takes them as a table without a copy, with the columns row_id, primary_key and the requested included
columns: `pyarrow.table(matches)`. Row ids are those of the group; in a sharded group they are uint64, `shard
<< 32 | row`.)doc");
  rows.def("__len__", &FoundWhere::size, "The number of rows.")
      .def_prop_ro(
          "row_ids", [](const FoundWhere& found) { return ToNumPy(found.row_ids); },
          nb::sig("def row_ids(self) -> numpy.typing.NDArray[numpy.uint32 | numpy.uint64]"),
          "uint32[rows], or uint64[rows] for a sharded group, in the requested order. "
          "Read-only, no copy.")
      .def_prop_ro("primary_keys", &FoundWhere::PrimaryKeys, "Each row's primary key.")
      .def_prop_ro(
          "columns", [](const FoundWhere& found) { return DictOf(found.Columns()); },
          nb::sig("def columns(self) -> dict[str, Column]"),
          "Each row's values in the requested included columns, by name.")
      .def_prop_ro(
          "cursor",
          [](const FoundWhere& found) {
            const std::string& cursor = found.contents->matches.cursor;
            return nb::bytes(cursor.data(), cursor.size());
          },
          "The cursor of the next page, for `after=`; empty bytes if there is none.")
      .def_prop_ro(
          "plan", [](const FoundWhere& found) { return found.contents->matches.plan.ToString(); },
          "How the rows were found, as human-readable text.");
  BindTable(rows);
}

}  // namespace

#define CAIRN_PARAMETERS_SIG "collections.abc.Sequence[typing.Any] | None = None"

void BindWhere(nb::module_& module) {
  BindFoundWhere(module);
  BindRowGroups(module);
  nb::class_<Group>(module, "IndexGroup",
                    R"doc(Several indexes of one column family and one state, queried together.

    group = cairn.IndexGroup([cairn.open("/data/age"), cairn.open("/data/city")])
    group.count("age >= 18 AND city IN ('Lisbon', 'Oslo')")
    group.count("city = ? AND age >= ?", [name, 18])
    page = group.where("NOT city = 'Oslo'", order_by="age", limit=100)

Predicates use the names in the indexes' specs, or the names in a mapping from names to indexes. The logic is
SQL's, with NULL for a row without a key. docs/queries.md has the grammar. The group does not see later
catch_ups.

Sharded indexes are supported: any that are sharded by key range, and those sharded by source if all have the
same sources.)doc")
      .def(
          "__init__", [](Group* self, nb::handle indexes) { new (self) Group(Group::Of(indexes)); },
          nb::arg("indexes").none(),
          nb::sig("def __init__(self, indexes: collections.abc.Iterable[Index] | dict[str, Index]) "
                  "-> None"))
      .def_prop_ro("names", &Group::Names, "The names of the indexes in predicates.")
      .def_prop_ro("in_shards", &Group::in_shards,
                   "Whether the indexes have several sources, so that row ids contain the shard.")
      .def("count", &Group::Count, nb::arg("where") = nb::none(),
           nb::arg("parameters") = nb::none(), nb::kw_only(), nb::arg("strategy") = "auto",
           nb::arg("timeout") = nb::none(),
           nb::sig("def count(self, where: str | None = None, parameters: " CAIRN_PARAMETERS_SIG
                   ", *, strategy: str = 'auto', timeout: float | None = None) -> int"),
           "The number of rows for which the predicate is true; without one, of rows in an index.")
      .def(
          "where", &Group::Find, nb::arg("where") = nb::none(), nb::arg("parameters") = nb::none(),
          nb::kw_only(), nb::arg("order_by") = nb::none(), nb::arg("descending") = false,
          nb::arg("limit") = nb::none(), nb::arg("after").none() = nb::bytes("", 0),
          nb::arg("columns") = nb::tuple(), nb::arg("strategy") = "auto",
          nb::arg("timeout") = nb::none(),
          nb::sig("def where(self, where: str | None = None, parameters: " CAIRN_PARAMETERS_SIG
                  ", *, order_by: str | None = None, descending: bool = "
                  "False, limit: int | None = None, after: bytes = b'', columns: "
                  "collections.abc.Sequence[str] = (), strategy: str = 'auto', timeout: float | "
                  "None = None) -> "
                  "WhereResult"),
          R"doc(The rows for which the predicate is true, by primary key, or in the order of an index with rows without a key
last.

    group.where("city = ? AND age >= ?", ["Lisbon", 18])

`parameters` are the values of the predicate's `?`, in their order: str, bytes, int, float, None, or NumPy
scalars, and tuples of these for keys of several parts. They are not parsed: always pass untrusted values as
parameters, never in the text.)doc")
      .def(
          "aggregate", &Group::Aggregate, nb::arg("aggregates").none(),
          nb::arg("where") = nb::none(), nb::arg("parameters") = nb::none(), nb::kw_only(),
          nb::arg("group_by") = nb::tuple(), nb::arg("order_by") = nb::tuple(),
          nb::arg("limit") = nb::none(), nb::arg("after").none() = nb::bytes("", 0),
          nb::arg("strategy") = "auto", nb::arg("timeout") = nb::none(),
          nb::sig("def aggregate(self, aggregates: collections.abc.Mapping[str, str | "
                  "collections.abc.Sequence[str]], where: str | None = None, "
                  "parameters: " CAIRN_PARAMETERS_SIG
                  ", *, group_by: collections.abc.Sequence[str] = (), order_by: "
                  "collections.abc.Sequence[str] = (), limit: int | None = None, after: bytes = "
                  "b'', strategy: str = 'auto', timeout: float | None = None) -> GroupByResult"),
          R"doc(Groups the rows for which the predicate is true by columns, and computes aggregates of each group.

    group.aggregate({"rows": "count", "total": ("sum", "price")}, "age >= ?", [18], group_by=["city"],
                    order_by=["total desc"], limit=10)

Functions: "count" of rows or of a column's values, "count_distinct", "sum", "avg", "min", "max" of a column.
Columns are included columns, "price" or "age.price", and keys, "age" or "place.part2". order_by lists
columns of the result; " desc" after a name sorts in descending order. Without group_by, all rows are one
group. `parameters` are as in where(). Names of result columns must be distinct. OutOfRange if a sum of
integers does not fit 64 bits.)doc")
      .def("explain", &Group::Explain, nb::arg("where") = nb::none(),
           nb::arg("parameters") = nb::none(), nb::kw_only(), nb::arg("order_by") = nb::none(),
           nb::arg("limit") = nb::none(), nb::arg("strategy") = "auto",
           nb::sig("def explain(self, where: str | None = None, parameters: " CAIRN_PARAMETERS_SIG
                   ", *, order_by: str | None = None, limit: int | None = None, strategy: str = "
                   "'auto') -> str"),
           "How the query would be executed, as human-readable text.");
}

}  // namespace cairn::python
