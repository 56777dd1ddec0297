#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cairn/types.h"
#include "gpu/where/where_program.h"

namespace cairn::gpu {

// The data of a predicate for kernels: pointers to device memory, passed by value.
//
// Each row has a position in each column. Rows with a key have that of their entry in (key, row id)
// order; rows without a key follow in row order. So any set of a predicate is a list of position
// ranges, and a row is in the set or not. A column's positions are divided into up to 256 buckets
// of equal size, and a row's code is the number of its bucket. Codes are conclusive for all rows
// except those in buckets in which a range begins or ends.

// Codes are stored bit by bit: those of 32 rows are eight words, and word b has bit b of each code.
// So one code is compared with the codes of 32 rows at once, in eight operations. A row's code is
// in one sector of memory, like any byte.
inline constexpr uint32_t kCodeBits = 8, kCodes = 1 << kCodeBits;

// A column for the search for rows.
struct WhereColumnView {
  const uint4* codes;         // [rows / 32][2], up to a multiple of kTileRows
  const Position* positions;  // [rows]
  const RowId* rows;          // [rows], by position
};

// The properties of a set's ranges, once they have been found.
struct WhereSetState {
  Position begin, end;  // of the only range
  uint32_t rows;        // of all ranges
  // Codes of the only range: those with some or all positions in the range, and those with all. If
  // there are none, the first is greater than the last.
  uint8_t possible_first, possible_last, sure_first, sure_last;
  // One bit per code: whether some of its positions are in the set, and whether all are.
  uint32_t possible[kCodes / 32], sure[kCodes / 32];
};

struct WhereSetView {
  WhereColumnView column;
  uint32_t first_range;
  uint32_t ranges;
};

struct WhereView {
  WhereSetView sets[kMaxSets];
  WhereOp ops[kMaxOps];
  uint32_t set_count;
  uint32_t op_count;
  uint32_t rows;
  uint32_t bucket;              // positions per code
  const WhereSetState* states;  // by set
  // Position ranges of all sets, set after set: ascending, possibly empty. `before` is, for each
  // range, the number of positions in earlier ranges of the same set.
  const Position* begins;
  const Position* ends;
  const uint32_t* before;
};

// Rows that a block evaluates at a time; also the rows per tile of a list.
inline constexpr uint32_t kTileRows = 8192;
constexpr uint64_t TilesOf(uint64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}

// Positions per code.
constexpr uint32_t BucketOf(uint64_t rows) {
  return rows == 0 ? 1 : static_cast<uint32_t>((rows + kCodes - 1) / kCodes);
}

}  // namespace cairn::gpu
