#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cairn/types.h"
#include "gpu/where/where_program.h"

namespace cairn::gpu {

// What kernels know of a predicate: pointers to device memory, passed by value.
//
// All rows have a position in each column: those with a key that of their entry in (key, row id)
// order, those without one the positions behind, in their order. So every set of a predicate,
// whatever it asks for, is a list of ranges of positions, and a row is in it or not. A column's
// positions are cut into up to 256 buckets of as many each, a row's code is its bucket's number:
// codes tell of all rows but those of the buckets in which a range begins or ends.

// Codes stand in bits: those of 32 rows are eight words, of which word b has bit b of each. So a
// code is compared with another for 32 rows at once, in eight operations; and a row's code is in
// one sector of memory, as any byte is.
inline constexpr uint32_t kCodeBits = 8, kCodes = 1 << kCodeBits;

// A column as the search for rows reads it.
struct WhereColumnView {
  const uint4* codes;         // [rows / 32][2], up to a multiple of kTileRows
  const Position* positions;  // [rows]
  const RowId* rows;          // [rows], by position
};

// What a set's ranges are like, once they have been found.
struct WhereSetState {
  Position begin, end;  // of the only range
  uint32_t rows;        // of all ranges
  // Codes of the only range: of which some or all positions are in it, of which all are. The first
  // is greater than the last where there is none.
  uint8_t possible_first, possible_last, sure_first, sure_last;
  // A bit for each code: whether some of its positions are in the set, and whether all are.
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
  uint32_t bucket;              // positions of a code
  const WhereSetState* states;  // by set
  // Ranges of positions of all sets, one set's behind the other's: ascending, some maybe empty. And
  // how many positions the ranges of the same set have before each.
  const Position* begins;
  const Position* ends;
  const uint32_t* before;
};

// Rows are looked at so many at a time by a block, and listed by tiles of as many.
inline constexpr uint32_t kTileRows = 8192;
constexpr uint64_t TilesOf(uint64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}

// Positions of a code.
constexpr uint32_t BucketOf(uint64_t rows) {
  return rows == 0 ? 1 : static_cast<uint32_t>((rows + kCodes - 1) / kCodes);
}

}  // namespace cairn::gpu
