#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "gpu/packed/leaf_answer.cuh"
#include "gpu/packed/packed_search.h"

// Output of results by the packed searches.

namespace cairn::gpu {

// Writes the result of query i: either its position, or the one past all keys, and the position
// `equal` entries later; or a row id.
template <PackedAnswer kAnswer, typename Queries>
__device__ void WritePosition(const PackedView& view, const PackedBatch<Queries>& batch, size_t i,
                              bool past_all, Position found, uint32_t equal) {
  const auto write = [&](Position* to, Position position) {
    __stcs(to + i, view.first_entry != nullptr ? view.first_entry[position] : position);
  };
  const Position position = past_all ? view.distinct : found;
  write(static_cast<Position*>(batch.results), position);
  if constexpr (kAnswer == PackedAnswer::kRange) write(batch.ends, position + equal);
}
template <PackedAnswer kAnswer, typename Queries>
__device__ void WriteRow(const PackedBatch<Queries>& batch, size_t i, RowId row_id) {
  if constexpr (kAnswer == PackedAnswer::kRow) {
    __stcs(static_cast<RowId*>(batch.results) + i, row_id);
  } else {
    static_cast<bool*>(batch.results)[i] = row_id != kNoRow;
  }
}

}  // namespace cairn::gpu
