#pragma once

#include <cstdint>

#include "engine/rows/row_block.h"

namespace cairn {

// Definitions that the writer and the reader of a row table share. docs/internals/formats.md
// describes the bytes.

// Ids of a row table's sections.
enum class RowTableSection : uint32_t {
  kBlocks = 1,        // blocks (row_block.h) in order within each part; extents of parts interleave
  kParts = 2,         // RowTablePart: one per part, and one more with the totals
  kBlockOffsets = 3,  // uint64_t, one per block, by part: its offset in kBlocks
  kSeparatorEnds = 4,  // uint64_t: 0, then the end of each separator in kSeparators
  kSeparators = 5,     // bytes of the separators, by part
};

// The numbers of rows, blocks and separators before a part.
struct RowTablePart {
  uint64_t first_row;
  uint64_t first_block;
  uint64_t first_separator;
};

// In each part, the first of every kBlocksPerSeparator blocks has a separator: a string that is
// greater than all keys before the block, and at most its first key. Searches bisect the
// separators, which stay in a cache, before they read blocks.
inline constexpr uint32_t kBlocksPerSeparator = 64;

}  // namespace cairn
