#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/types.h"
#include "index/columns/column_format.h"

namespace cairn {

// One column of a table whose directory has been checked: `blocks` contains every block's packed
// numbers and 8 bytes after them. The packed numbers of strings are checked when they are read. A
// view that owns nothing; thread-safe.
struct ColumnReader {
  std::string_view file;  // for messages, as `name`
  std::string_view name;
  DataType type = DataType::kU64;
  uint64_t rows = 0;
  uint64_t nulls = 0;
  bool has_nulls = false;  // whether any block has nulls
  absl::Span<const char> blocks;
  absl::Span<const ColumnBlock> directory;     // of this column
  absl::Span<const uint32_t> dictionary_ends;  // ascending to the heap's size
  std::string_view dictionary_heap;

  uint64_t RowsOf(uint64_t block) const {
    const uint64_t first = block << kLog2RowsPerColumnBlock;
    return rows - first < kRowsPerColumnBlock ? rows - first : kRowsPerColumnBlock;
  }

  // Appends the values of existing rows to `values`, a column of this type. Errors: DataLoss.
  // Throws std::bad_alloc. If it fails, some values may have been appended.
  absl::Status Gather(absl::Span<const RowId> row_ids, ColumnValues* values) const;
  absl::Status Read(uint64_t begin, uint64_t end, ColumnValues* values) const;

  // Writes the integers of existing rows, 0 for null. Requires that the column's type be an
  // unsigned or a signed integer, as Integer is.
  template <typename Integer>
  void GatherIntegers(absl::Span<const RowId> row_ids, Integer* out) const;

  // Bytes of a block in its section.
  uint64_t BytesOf(uint64_t block) const;

  // Reads a block, and adds the number of its nulls to `*nulls`. DataLoss: a string is not in its
  // heap or in the dictionary.
  absl::Status Check(uint64_t block, uint64_t* nulls) const;

  absl::Status Damaged(uint64_t block, std::string_view what) const;
};

}  // namespace cairn
