#include "python/src/stats.h"

#include <nanobind/stl/string.h>

#include "absl/time/time.h"

namespace nb = nanobind;

namespace cairn::python {
namespace {

nb::dict RouteDict(const RouteStats& route) {
  nb::dict dict;
  dict["route"] = route.route;
  dict["batches"] = route.batches;
  dict["queries"] = route.queries;
  dict["bytes"] = route.bytes;
  dict["failures"] = route.failures;
  dict["busy"] = absl::ToDoubleSeconds(route.busy);
  nb::list times;
  for (const uint64_t count : route.response_times) times.append(count);
  dict["response_times"] = times;
  return dict;
}

}  // namespace

nb::dict StatsDict(const IndexStats& stats) {
  nb::dict dict;
  dict["rows"] = stats.rows;
  dict["entries"] = stats.entries;
  dict["distinct_keys"] = stats.distinct_keys;
  dict["sequence"] = stats.sequence;
  dict["version"] = stats.version;
  dict["database_id"] = stats.database_id;
  nb::list ordered;
  for (const IndexStats::OrderedIndex& index : stats.ordered_indexes) {
    nb::dict one;
    one["description"] = index.description;
    one["bytes"] = index.bytes;
    one["huge_page_bytes"] = index.huge_page_bytes;
    one["mapped_bytes"] = index.mapped_bytes;
    ordered.append(one);
  }
  dict["ordered_indexes"] = ordered;
  dict["fallback"] = stats.fallback;
  nb::list routes;
  for (const RouteStats& route : stats.routes) routes.append(RouteDict(route));
  dict["routes"] = routes;
  nb::dict delta;
  delta["new_rows"] = stats.delta.new_rows;
  delta["added_entries"] = stats.delta.added_entries;
  delta["removed_entries"] = stats.delta.removed_entries;
  delta["segments"] = stats.delta.segments;
  delta["bytes"] = stats.delta.bytes;
  dict["delta"] = delta;
  nb::list aggregates;
  for (const IndexStats::Aggregates& of : stats.aggregates) {
    nb::dict one;
    one["column"] = of.column;
    one["bytes"] = of.bytes;
    aggregates.append(one);
  }
  dict["aggregates"] = aggregates;
  nb::list sections;
  for (const IndexStats::Section& section : stats.sections) {
    nb::dict one;
    one["file"] = section.file;
    one["name"] = section.name;
    one["bytes"] = section.bytes;
    sections.append(one);
  }
  dict["sections"] = sections;
  return dict;
}

}  // namespace cairn::python
