#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// Sets the positions [begin[i], end[i]) of range `first` + i, for as many ranges as the spans hold,
// at most kQueryChunk. Requires that CheckRanges have passed. Errors are the index's own.
absl::Status RangePositions(const OrderedIndex& index, const RangeBatch& ranges, size_t first,
                            absl::Span<Position> begin, absl::Span<Position> end);

}  // namespace cairn
