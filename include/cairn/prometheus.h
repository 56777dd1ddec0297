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

// Indexes' statistics in the text format that Prometheus scrapes (version 0.0.4): counters and a
// histogram of response times a route, gauges of the index. Each sample has the label `index`, and
// those of routes the label `route`; quotes, backslashes and line feeds in labels are escaped.
std::string PrometheusText(absl::Span<const NamedStats> indexes);

}  // namespace cairn
