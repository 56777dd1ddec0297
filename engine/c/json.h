#pragma once

#include <string>

#include "cairn/query.h"
#include "cairn/secondary_index.h"

namespace cairn {

// Return a JSON object with one member per field, of the same name. Times are in nanoseconds, and
// their names end with _ns. An infinite time is null.
std::string ToJson(const IndexStats& stats);
std::string ToJson(const Explain& explain);

}  // namespace cairn
