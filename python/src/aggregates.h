#pragma once

// Aggregates: what cairn.Index's aggregate and group_by take and give.

#include <nanobind/nanobind.h>

#include "python/src/index.h"

namespace cairn::python {

// Adds the methods aggregate and group_by to the class, and cairn.Groups to the module.
void BindAggregates(nb::module_& module, nb::class_<Index, Queries>& index);

}  // namespace cairn::python
