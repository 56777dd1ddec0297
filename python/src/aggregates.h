#pragma once

// Aggregates: the arguments and results of aggregate and group_by of cairn.Index.

#include <nanobind/nanobind.h>

#include "python/src/index.h"

namespace cairn::python {

// The arguments of methods with ranges but without cursors, for their bindings, and the signature
// of `aggregates` and these.
#define CAIRN_AGGREGATE_RANGES                                                                   \
  nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(), nb::kw_only(),                   \
  nb::arg("keys") = nb::none(), nb::arg("prefix") = nb::none(), nb::arg("leading") = nb::none(), \
  nb::arg("bounds") = "[)"
#define CAIRN_AGGREGATE_RANGES_SIG                                                               \
  "aggregates: collections.abc.Mapping[str, str | collections.abc.Sequence[str]], lower: "       \
  "typing.Any = None, upper: typing.Any = None, *, keys: typing.Any = None, prefix: typing.Any " \
  "= None, leading: typing.Any = None, bounds: str = '[)'"

// Adds the methods aggregate and group_by to the class, and cairn.AggregateGroupsResult to the
// module.
void BindAggregates(nb::module_& module, nb::class_<Index, Queries>& index);

}  // namespace cairn::python
