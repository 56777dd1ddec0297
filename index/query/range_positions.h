#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

namespace cairn {

// Sets the positions [begin[i], end[i]) of range `first` + i, for as many ranges as the spans hold,
// at most kQueryChunk, with the lower bounds that `lower_bound` finds in the run. Requires that
// CheckBatch have passed.
void RangePositions(const SortedRun& run,
                    absl::FunctionRef<void(KeyBatch keys, Position* positions)> lower_bound,
                    const RangeBatch& ranges, size_t first, absl::Span<Position> begin,
                    absl::Span<Position> end);

}  // namespace cairn
