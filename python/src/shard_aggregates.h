#pragma once

// Aggregates over shards in several processes: methods of ShardMap.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "cairn/sharding.h"

namespace cairn::python {

// A ShardMap and its directory. Immutable; thread-safe.
struct PublishedMap {
  std::string directory;
  std::unique_ptr<const ShardMap> map;
};

// Adds the methods aggregate_part, group_part, combine_aggregates and combine_groups to the class.
void BindShardAggregates(nanobind::class_<PublishedMap>& map);

}  // namespace cairn::python
