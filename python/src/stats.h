#pragma once

#include <nanobind/nanobind.h>

#include "cairn/secondary_index.h"

namespace cairn::python {

// IndexStats as nested dicts and lists, under the names of its fields.
nanobind::dict StatsDict(const IndexStats& stats);

}  // namespace cairn::python
