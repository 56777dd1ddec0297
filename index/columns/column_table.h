#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/types.h"
#include "index/columns/column_format.h"

namespace cairn {

// A column's name and type.
struct ColumnSchema {
  std::string name;
  DataType type = DataType::kU64;

  bool operator==(const ColumnSchema&) const = default;
};

// InvalidArgument, naming the column, unless they are 1 to kMaxColumns columns of different names
// that are neither empty nor longer than kMaxColumnNameBytes.
absl::Status CheckColumns(absl::Span<const ColumnSchema> columns);

// Typed columns by row: row id -> values, nulls among them. Immutable and mapped; every method is
// safe from any number of threads. A copy shares the memory.
//
// Values stand in blocks of 1,024 rows (column_format.h), each packed in as few bits as its values
// allow, in a form that gives any value without decoding those before it: a number costs a line of
// the directory, of 16 bytes a block, which stays in a cache, and one of the block.
//
// Whatever the bytes are, no method reads outside of them: where they contradict one another it
// returns DataLoss, naming the file.
class ColumnTable {
 public:
  // The table's bytes, section by section, with the alignment of their elements.
  struct Sections {
    ColumnFileProperties properties = {};
    absl::Span<const ColumnRecord> columns;
    std::string_view names;
    absl::Span<const char> blocks;
    absl::Span<const ColumnBlock> directory;
    absl::Span<const uint32_t> dictionary_ends;
    std::string_view dictionary_heap;
  };

  ColumnTable() = default;  // no columns, no rows

  // A table over bytes that `owner` keeps alive; `name` is what messages call it. DataLoss, naming
  // section, column and block, where records or the directory contradict themselves or lead outside
  // of the sections. kFull also reads every block, on up to `threads` threads. Throws
  // std::bad_alloc.
  static absl::StatusOr<ColumnTable> Wrap(const Sections& sections, std::string name,
                                          VerifyLevel level, int threads,
                                          std::shared_ptr<const void> owner);

  uint64_t rows() const;
  absl::Span<const ColumnSchema> columns() const;
  // The column of this name.
  std::optional<size_t> Find(std::string_view name) const;
  // Rows in which a column, which is one of columns(), is null.
  uint64_t null_count(size_t column) const;
  // Bytes of the mapped sections, and those of one column alone, without what all share.
  uint64_t memory_bytes() const;
  uint64_t column_bytes(size_t column) const;

  // Appends a column's value in each of these rows, in any order, to `values`, which is of the
  // column's type. InvalidArgument where it is not, or there is no such column; OutOfRange, naming
  // the first one, for an id that is no row's; DataLoss; ResourceExhausted. Nothing is appended on
  // an error.
  absl::Status Gather(size_t column, absl::Span<const RowId> row_ids, ColumnValues* values) const;
  // Likewise the rows [begin, end).
  absl::Status Read(size_t column, uint64_t begin, uint64_t end, ColumnValues* values) const;

  // Writes the integers of a column of unsigned (signed) integers, 0 for null; `values` is as long
  // as row_ids. Errors as Gather's, and InvalidArgument for a column of another type.
  absl::Status GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                              absl::Span<uint64_t> values) const;
  absl::Status GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                              absl::Span<int64_t> values) const;

 private:
  struct State;

  // The errors that Gather's and Read's arguments may be.
  absl::Status CheckColumn(size_t column) const;
  absl::Status CheckType(size_t column, DataType type) const;
  absl::Status CheckRows(absl::Span<const RowId> row_ids) const;
  template <typename Integer>
  absl::Status GatherAs(size_t column, absl::Span<const RowId> row_ids,
                        absl::Span<Integer> values) const;

  std::shared_ptr<const State> state_;  // null: no columns, no rows
};

}  // namespace cairn
