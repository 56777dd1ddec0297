#pragma once

#include <string>

#include "cairn/query.h"
#include "cairn/secondary_index.h"

namespace cairn {

// JSON objects whose members are the fields, by name; times are in nanoseconds, their names end
// with _ns, and an infinite one is null.
std::string ToJson(const IndexStats& stats);
std::string ToJson(const Explain& explain);

}  // namespace cairn
