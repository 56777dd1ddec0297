#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn {

// Returns the 64-bit id of a row of shard 0, or kNoGlobalRow for kNoRow. Has no branch: kNoRow + 1
// is 0, and kNoGlobalRow is 0 - 1.
inline GlobalRowId WideRow(RowId row) {
  return GlobalRowId{static_cast<RowId>(row + 1)} - 1;
}

// Sets rows[i] to the 64-bit id of row_ids[i]. The memory must not overlap.
inline void WidenRows(absl::Span<const RowId> row_ids, GlobalRowId* rows) {
  for (size_t i = 0; i < row_ids.size(); ++i) rows[i] = WideRow(row_ids[i]);
}

}  // namespace cairn
