#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

// Fills a FindResult from ranges of positions. Range first + i of a batch has the positions
// [begin[i], end[i]). At most options.limit entries of each count, from the end at which
// options.order starts. ResourceExhausted if memory runs out.
namespace cairn {

// Empties *matches for a batch of `queries`; it keeps its capacity.
absl::Status BeginMatches(PhysicalType kind, size_t queries, FindResult* matches);

// Sets the ranges' offsets and makes room for their rows. The offset of range `first` must be set.
absl::Status AllocateRows(const QueryOptions& options, size_t first,
                          absl::Span<const Position> begin, absl::Span<const Position> end,
                          FindResult* matches);

// BeginMatches and AllocateRows for a whole batch. Old rows of *matches stay if they fit, and are
// overwritten later, so that a warm call does not first clear memory.
absl::Status PlanMatches(PhysicalType kind, const QueryOptions& options,
                         absl::Span<const Position> begin, absl::Span<const Position> end,
                         FindResult* matches);

// Writes the ranges' rows to the memory from AllocateRows. Several threads may write different
// ranges. Errors, here and below: Cancelled and DeadlineExceeded as `options` require.
absl::Status CopyRows(const SortedRun& run, const QueryOptions& options, size_t first,
                      absl::Span<const Position> begin, absl::Span<const Position> end,
                      FindResult* matches);

// Appends the ranges' keys if options.with_keys.
absl::Status AppendKeys(const SortedRun& run, const QueryOptions& options,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches);

// All three steps for the next ranges of a batch.
absl::Status AppendRows(const SortedRun& run, const QueryOptions& options, size_t first,
                        absl::Span<const Position> begin, absl::Span<const Position> end,
                        FindResult* matches);

}  // namespace cairn
