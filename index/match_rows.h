#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Filling Matches from positions in a run. ResourceExhausted where the result does not fit into
// memory.
namespace cairn {

// Empties *matches for a batch of `queries`, whose results are then appended in order.
absl::Status BeginMatches(KeyKind kind, size_t queries, Matches* matches);

// Appends the rows, and with options.with_keys the keys, of some position ranges, the first of
// which is query `first` of the batch: in options.order, at most options.limit each. Requires that
// all queries before have been appended. Ranges are prefetched together: at most kQueryChunk at a
// time is best.
absl::Status AppendRows(const SortedRun& run, const QueryOptions& options, size_t first,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        Matches* matches);

}  // namespace cairn
