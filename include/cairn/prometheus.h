#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "cairn/secondary_index.h"

namespace cairn {

struct NamedStats {
  std::string_view index;  // the value of the label `index`
  const IndexStats* stats;
};

// Returns statistics of indexes in the Prometheus text format (version 0.0.4): counters and a
// latency histogram per route, and gauges per index. Each sample has the label `index`, and samples
// of routes have the label `route`. Quotes, backslashes and line feeds in labels are escaped.
// Throws std::bad_alloc if memory runs out.
std::string PrometheusText(absl::Span<const NamedStats> indexes);

}  // namespace cairn
