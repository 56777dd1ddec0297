#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "cairn/indexed_db.h"
#include "cairn/secondary_index.h"

namespace cairn {

// The statistics of one index, and its labels.
struct NamedStats {
  std::string_view index;  // the value of the label `index`
  const IndexStats* stats;
  std::string_view database = {};  // the value of the label `database`; empty: no such label
};

// Returns statistics of indexes in the Prometheus text format (version 0.0.4): counters and a
// latency histogram per route, and gauges per index. Each sample has the label `index`, and samples
// of routes have the label `route`. Quotes, backslashes and line feeds in labels are escaped.
// Throws std::bad_alloc if memory runs out.
std::string PrometheusText(absl::Span<const NamedStats> indexes);

// Returns metrics of all indexes of open databases, for one metrics page per process. They contain
// the statistics above for every index that has been built. For all indexes, they contain states,
// lag, and counts of builds, flushes, compactions and their failures. Writes that waited for
// indexes are counted, too. docs/operations.md lists the metrics, with alerts. Each sample has
// the label `database`, the path of the database. Samples of an index have the label `index`, and
// those of states and work also `column_family`. Counters start at zero when a database is opened.
// Costs some microseconds per index. After IndexedDB::Close the indexes are reported as failed.
std::string PrometheusText(absl::Span<const IndexedDB* const> databases);
std::string PrometheusText(const IndexedDB& database);

}  // namespace cairn
