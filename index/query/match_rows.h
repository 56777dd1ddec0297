#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// How a FindResult is filled from ranges of positions. Ranges `first` to first + begin.size() of a
// batch are [begin[i], end[i]); of each, options.limit entries count, from the end that
// options.order starts at. ResourceExhausted where memory does not suffice.
namespace cairn {

// Empties *matches, which keeps its capacity, for a batch of `queries`.
absl::Status BeginMatches(PhysicalType kind, size_t queries, FindResult* matches);

// Sets the ranges' offsets and makes room for their rows. Requires the offset of range `first`.
absl::Status AllocateRows(const QueryOptions& options, size_t first,
                          absl::Span<const Position> begin, absl::Span<const Position> end,
                          FindResult* matches);

// Both for the whole batch: what *matches holds of rows stays where they fit, to be written over,
// so that a warm call does not clear memory that it is about to fill.
absl::Status PlanMatches(PhysicalType kind, const QueryOptions& options,
                         absl::Span<const Position> begin, absl::Span<const Position> end,
                         FindResult* matches);

// Writes the ranges' rows to where AllocateRows made room; different ranges by different threads,
// if need be.
void CopyRows(const SortedRun& run, const QueryOptions& options, size_t first,
              absl::Span<const Position> begin, absl::Span<const Position> end,
              FindResult* matches);

// Appends the ranges' keys if options.with_keys.
absl::Status AppendKeys(const SortedRun& run, const QueryOptions& options,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches);

// All three, for the next ranges of a batch.
absl::Status AppendRows(const SortedRun& run, const QueryOptions& options, size_t first,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches);

}  // namespace cairn
