#pragma once

#include <cstddef>
#include <string>

#include "cairn/column.h"
#include "index/columns/column_dictionary.h"
#include "index/columns/column_format.h"

namespace cairn {

// Appends the block of values [first, first + count), at most kRowsPerColumnBlock of them, to
// `bytes`. The size of `bytes` must be a multiple of 8, and is again one afterwards. The block's
// offset is that in `bytes`. Uses the encoding of the type that takes the fewest bytes;
// `dictionary` may be null. Throws std::bad_alloc.
void EncodeBlock(const ColumnValues& values, size_t first, size_t count,
                 ColumnDictionary* dictionary, std::string* bytes, ColumnBlock* block);

// Appends the `rows` values of a block that EncodeBlock made without a dictionary. Its section
// starts at `bytes`; 8 bytes after the section must be readable. The bytes are trusted. Throws
// std::bad_alloc.
void DecodeBlock(const ColumnBlock& block, const char* bytes, size_t rows, ColumnValues* values);

}  // namespace cairn
