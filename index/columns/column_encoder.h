#pragma once

#include <cstddef>
#include <string>

#include "cairn/column.h"
#include "index/columns/column_dictionary.h"
#include "index/columns/column_format.h"

namespace cairn {

// Appends the block of values [first, first + count), at most kRowsPerColumnBlock of them, to
// `bytes`, whose size is a multiple of 8 and becomes another. The block's offset is that in
// `bytes`. Of the encodings that the type has, it is the one that takes the fewest bytes; a
// dictionary may be null. Throws std::bad_alloc.
void EncodeBlock(const ColumnValues& values, size_t first, size_t count,
                 ColumnDictionary* dictionary, std::string* bytes, ColumnBlock* block);

// Appends the `rows` values of a block that EncodeBlock made without a dictionary, whose section
// starts at `bytes`, with 8 bytes readable behind it, and is trusted. Throws std::bad_alloc.
void DecodeBlock(const ColumnBlock& block, const char* bytes, size_t rows, ColumnValues* values);

}  // namespace cairn
