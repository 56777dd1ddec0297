#include "python/src/shard_aggregates.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/aggregate.h"
#include "python/src/aggregates.h"
#include "python/src/base/errors.h"
#include "python/src/base/gil.h"
#include "python/src/groups.h"
#include "python/src/in/aggregates_in.h"
#include "python/src/in/arguments.h"
#include "python/src/in/buffer.h"
#include "python/src/in/ranges_in.h"
#include "python/src/index.h"

namespace cairn::python {
namespace {

QueryOptions OptionsOf(std::optional<Limit> limit) {
  QueryOptions options;
  if (limit.has_value()) options.limit = limit->most;
  return options;
}

nb::bytes Bytes(const std::string& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

nb::bytes RangesPart(const PublishedMap& self, const Index& shard, nb::handle aggregates,
                     const RangeArguments& arguments) {
  const auto index = shard.OpenSecondary();
  const NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.map->codec());
  absl::StatusOr<std::string> part = std::string();
  {
    const GilReleased released;
    part = self.map->AggregateRangesPart(*index, in.batch(), named.aggregates);
  }
  return Bytes(ValueOf(std::move(part)));
}

nb::bytes GroupsPart(const PublishedMap& self, const Index& shard, size_t parts,
                     nb::handle aggregates, const RangeArguments& arguments,
                     std::optional<Limit> limit) {
  const auto index = shard.OpenSecondary();
  const NamedAggregates named = AggregatesOf(aggregates);
  const RangesIn in(arguments, self.map->codec());
  absl::StatusOr<std::string> part = std::string();
  {
    const GilReleased released;
    part = self.map->AggregateGroupsPart(*index, in.batch(), parts, named.aggregates,
                                         OptionsOf(limit));
  }
  return Bytes(ValueOf(std::move(part)));
}

// The results of shards: pairs of range numbers, an array of uint32, and bytes. Keeps these alive.
class PartsIn {
 public:
  explicit PartsIn(nb::handle parts) {
    for (nb::handle part : parts) {
      nb::object queries;
      nb::bytes results;
      if (!nb::isinstance<nb::tuple>(part) || nb::len(part) != 2 ||
          !nb::try_cast(part[1], results)) {
        ThrowInvalid("parts: expected pairs of range numbers and bytes, found " + Described(part));
      }
      queries = part[0];
      Buffer& held = buffers_.emplace_back();
      if (!held.Hold(queries)) {
        ThrowKeyType("parts: expected an array of uint32, found " + Described(queries));
      }
      if (const auto fault = held.WhyNot(DataType::kU32, queries)) ThrowKeyType("parts: " + *fault);
      parts_.push_back({{static_cast<const uint32_t*>(held.data()), held.size()},
                        {results.c_str(), results.size()}});
      results_.push_back(std::move(results));
    }
  }
  PartsIn(const PartsIn&) = delete;
  PartsIn& operator=(const PartsIn&) = delete;

  const std::vector<AggregatePart>& parts() const { return parts_; }

 private:
  std::deque<Buffer> buffers_;
  std::vector<nb::bytes> results_;
  std::vector<AggregatePart> parts_;
};

SharedColumn CombineAggregates(const PublishedMap& self, Argument<size_t, "ranges"> given,
                               nb::handle aggregates, nb::handle parts) {
  const size_t ranges = *given;
  const NamedAggregates named = AggregatesOf(aggregates);
  const PartsIn in(parts);
  auto values = std::make_shared<std::vector<ColumnValues>>();
  absl::Status status;
  {
    const GilReleased released;
    status = self.map->CombineRanges(ranges, named.aggregates, in.parts(), values.get());
  }
  Check(status);
  return TableOf(ranges, SharedColumn::Fields(named.names, std::move(values)));
}

FoundGroups CombineGroups(const PublishedMap& self, Argument<size_t, "ranges"> ranges,
                          Argument<size_t, "leading_parts"> leading_parts, nb::handle aggregates,
                          nb::handle parts, LimitArg<"limit"> limit) {
  NamedAggregates named = AggregatesOf(aggregates);
  const PartsIn in(parts);
  const QueryOptions options = OptionsOf(*limit);
  const size_t of = *ranges, leading = *leading_parts;
  auto groups = std::make_shared<AggregateGroupsResult>();
  absl::Status status;
  {
    const GilReleased released;
    status =
        self.map->CombineGroups(of, leading, named.aggregates, options, in.parts(), groups.get());
  }
  Check(status);
  return FoundGroups(std::move(groups), std::move(named.names));
}

#define CAIRN_COMBINE_SIG                                                                  \
  "aggregates: collections.abc.Mapping[str, str | collections.abc.Sequence[str]], parts: " \
  "collections.abc.Iterable[tuple[numpy.typing.NDArray[numpy.uint32], bytes]]"

}  // namespace

void BindShardAggregates(nb::class_<PublishedMap>& map) {
  map.def(
         "aggregate_part",
         [](const PublishedMap& self, nb::handle shard, nb::handle aggregates, nb::handle lower,
            nb::handle upper, nb::handle keys, nb::handle prefix, nb::handle leading,
            TextArg<"bounds"> bounds) {
           return RangesPart(self, IndexOf(shard, "shard"), aggregates,
                             {lower, upper, keys, prefix, leading, *bounds, nb::none()});
         },
         nb::arg("shard").none(), nb::arg("aggregates").none(), CAIRN_AGGREGATE_RANGES,
         nb::sig("def aggregate_part(self, shard: Index, " CAIRN_AGGREGATE_RANGES_SIG ") -> bytes"),
         R"doc(The part of one shard, opened by `open`, in Index.aggregate for the ranges that it is sent.

Exact, as bytes for combine_aggregates of the same version of Cairn. In an index sharded by source, it
contains all keys of each range if distinct keys are counted. Errors as Index.aggregate, except for sums that
do not fit.)doc")
      .def(
          "group_part",
          [](const PublishedMap& self, nb::handle shard, Argument<size_t, "parts"> parts,
             nb::handle aggregates, nb::handle lower, nb::handle upper, nb::handle keys,
             nb::handle prefix, nb::handle leading, TextArg<"bounds"> bounds,
             LimitArg<"limit"> limit, nb::handle after) {
            return GroupsPart(self, IndexOf(shard, "shard"), *parts, aggregates,
                              {lower, upper, keys, prefix, leading, *bounds, after}, *limit);
          },
          nb::arg("shard").none(), nb::arg("parts"), nb::arg("aggregates").none(),
          CAIRN_AGGREGATE_RANGES, nb::arg("limit") = nb::none(), nb::arg("after") = nb::none(),
          nb::sig("def group_part(self, shard: Index, parts: int, " CAIRN_AGGREGATE_RANGES_SIG
                  ", limit: int | None = None, after: collections.abc.Sequence[bytes] | None = "
                  "None) -> bytes"),
          "As aggregate_part, for Index.group_by and combine_groups.")
      .def("combine_aggregates", &CombineAggregates, nb::arg("ranges"),
           nb::arg("aggregates").none(), nb::arg("parts").none(),
           nb::sig("def combine_aggregates(self, ranges: int, " CAIRN_COMBINE_SIG ") -> Column"),
           R"doc(The result of Index.aggregate over all shards for a batch of `ranges` ranges.

parts: one pair for each shard that was sent ranges, in shard order: the numbers of its ranges, uint32, and
    the result of aggregate_part. A key in several shards counts once. OutOfRange if a total does not fit 64
    bits.)doc")
      .def("combine_groups", &CombineGroups, nb::arg("ranges"), nb::arg("leading_parts"),
           nb::arg("aggregates").none(), nb::arg("parts").none(), nb::arg("limit") = nb::none(),
           nb::sig("def combine_groups(self, ranges: int, leading_parts: int, " CAIRN_COMBINE_SIG
                   ", limit: int | None = None) -> AggregateGroupsResult"),
           "As combine_aggregates, for Index.group_by and group_part, with the shards' limit. "
           "Cursors "
           "are for `after` of all shards.");
}

}  // namespace cairn::python
