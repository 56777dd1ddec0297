#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "cairn/aggregate.h"

namespace cairn::python {

namespace nb = nanobind;

// Aggregates as a caller names them: {"rows": "count", "total": ("sum", "price")}.
struct NamedAggregates {
  std::vector<std::string> names;
  std::vector<Aggregate> aggregates;
};

// InvalidArgument, with the expected and the found value.
NamedAggregates AggregatesOf(nb::handle given);

}  // namespace cairn::python
