#pragma once

#include <nanobind/nanobind.h>

namespace cairn::python {

// Binds the class cairn.shards.ShardMap.
void BindShardMap(nanobind::module_& module);

}  // namespace cairn::python
