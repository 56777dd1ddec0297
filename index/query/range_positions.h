#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"

namespace cairn {

// Sets the positions [begin[i], end[i]) of range first + i for each element of the spans, at most
// kQueryChunk. `lower_bound` finds lower bounds in the run. Requires that CheckBatch have
// succeeded.
void RangePositions(const SortedRun& run,
                    absl::FunctionRef<void(KeyBatch keys, Position* positions)> lower_bound,
                    const RangeBatch& ranges, size_t first, absl::Span<Position> begin,
                    absl::Span<Position> end);

}  // namespace cairn
