#include "python/src/aggregates.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/aggregate.h"
#include "cairn/secondary_index.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/groups.h"
#include "python/src/in/aggregates_in.h"
#include "python/src/in/arguments.h"
#include "python/src/in/ranges_in.h"
#include "python/src/out/column.h"
#include "python/src/watched.h"

namespace cairn::python {
namespace {

SharedColumn AggregateRanges(const Index& self, nb::handle aggregates,
                             const RangeArguments& arguments, Timeout timeout) {
  const auto index = self.OpenSecondary();
  const NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.codec());
  auto values = std::make_shared<std::vector<ColumnValues>>();
  QueryOptions options;
  options.deadline = timeout.deadline;
  absl::Status status;
  {
    const GilReleased released;
    status = index->AggregateRanges(in.batch(), named.aggregates, values.get(), options);
  }
  Check(status);
  return TableOf(in.batch().size(), SharedColumn::Fields(named.names, std::move(values)));
}

FoundGroups GroupBy(const Index& self, size_t parts, nb::handle aggregates,
                    const RangeArguments& arguments, std::optional<Limit> limit, Timeout timeout) {
  const auto index = self.OpenSecondary();
  NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.codec());
  QueryOptions options;
  if (limit.has_value()) options.limit = limit->most;
  options.deadline = timeout.deadline;
  auto groups = std::make_shared<AggregateGroupsResult>();
  RunQuery([&](const std::atomic<bool>* cancelled) {
    options.cancelled = cancelled;
    return index->AggregateGroups(in.batch(), parts, named.aggregates, options, groups.get());
  });
  return FoundGroups(std::move(groups), std::move(named.names));
}

}  // namespace

void BindAggregates(nb::module_& module, nb::class_<Index, Queries>& index) {
  BindGroups(module);
  index
      .def(
          "aggregate",
          [](const Index& self, nb::handle aggregates, nb::handle lower, nb::handle upper,
             nb::handle keys, nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds,
             TimeoutArg timeout) {
            return AggregateRanges(self, aggregates,
                                   {lower, upper, keys, prefix, leading, *bounds, nb::none()},
                                   *timeout);
          },
          nb::arg("aggregates").none(), CAIRN_AGGREGATE_RANGES, nb::arg("timeout") = nb::none(),
          nb::sig("def aggregate(self, " CAIRN_AGGREGATE_RANGES_SIG
                  ", timeout: float | None = None) -> Column"),
          R"doc(Aggregates of each range: a column of structs, with one row per range and one field per aggregate.

    index.aggregate({"rows": "count", "total": ("sum", "price")}, keys=["de", "fr"])

Functions: "count" of entries or of a column's values, "count_distinct" of the keys, and "sum", "avg", "min",
    "max" of a column that the index includes ("include(…)" in its spec). Ranges are given as to count;
    without ranges, the whole index is one. The time does not depend on the number of entries. A row counts
    once for each of its keys in the range. Nulls are ignored; the sum, mean, minimum and maximum of no values
    are null. OutOfRange if a sum of integers does not fit 64 bits.)doc")
      .def(
          "group_by",
          [](const Index& self, Argument<size_t, "parts"> parts, nb::handle aggregates,
             nb::handle lower, nb::handle upper, nb::handle keys, nb::handle prefix,
             nb::handle leading, TextArg<"bounds"> bounds, LimitArg<"limit"> limit,
             nb::handle after, TimeoutArg timeout) {
            return GroupBy(self, *parts, aggregates,
                           {lower, upper, keys, prefix, leading, *bounds, after}, *limit, *timeout);
          },
          nb::arg("parts"), nb::arg("aggregates").none(), CAIRN_AGGREGATE_RANGES,
          nb::arg("limit") = nb::none(), nb::arg("after") = nb::none(),
          nb::arg("timeout") = nb::none(),
          nb::sig("def group_by(self, parts: int, " CAIRN_AGGREGATE_RANGES_SIG
                  ", limit: int | None = None, after: collections.abc.Sequence[bytes] | None = "
                  "None, timeout: float | None = None) -> AggregateGroupsResult"),
          R"doc(Aggregates of each group of a range: its entries with the same values in the first `parts` parts of the key.

With a `limit`, each range returns at most `limit` groups. `after` takes the `cursors` of the previous call
and continues there.)doc");
}

}  // namespace cairn::python
