#pragma once

#include <cstdint>

#include "engine/rows/row_block.h"

namespace cairn {

// What the writer and the reader of a row table share; the bytes are described in
// docs/internals/formats.md.

// Ids of a row table's sections.
enum class RowTableSection : uint32_t {
  kBlocks = 1,         // row_block.h, the blocks of one part in order, parts interleaved by extents
  kParts = 2,          // RowTablePart, one a part and one more with the totals
  kBlockOffsets = 3,   // uint64_t, one a block by part: its first byte in kBlocks
  kSeparatorEnds = 4,  // uint64_t: 0, then the end of each separator in kSeparators
  kSeparators = 5,     // bytes of the separators, by part
};

// What came before a part, in rows, blocks and separators.
struct RowTablePart {
  uint64_t first_row;
  uint64_t first_block;
  uint64_t first_separator;
};

// Every part's first block and then each of so many has a separator: a string that is greater than
// all keys before the block, and at most its first key. Searches bisect the separators, which stay
// in a cache, before they touch blocks.
inline constexpr uint32_t kBlocksPerSeparator = 64;

}  // namespace cairn
