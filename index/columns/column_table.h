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

// InvalidArgument, with the column's name, unless there are 1 to kMaxColumns columns with distinct
// names of 1 to kMaxColumnNameBytes bytes.
absl::Status CheckColumns(absl::Span<const ColumnSchema> columns);

// Typed columns by row: row id -> values, with nulls. Immutable and mapped; every method is safe
// from any number of threads. Copies share the memory.
//
// Values are stored in blocks of 1,024 rows (column_format.h). A block packs them in as few bits as
// its values allow, in a form that gives any value without decoding earlier ones. A read of a
// number touches one cache line of the directory, which has 16 bytes per block and stays in a
// cache, and one of the block.
//
// No method reads outside of the table's bytes, whatever they are. If they are inconsistent, it
// returns DataLoss with the file's name.
class ColumnTable {
 public:
  // The table's bytes by section; each has the alignment of its elements.
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

  // A table over bytes that `owner` keeps alive; messages call it `name`. DataLoss, with section,
  // column and block: records or the directory are inconsistent or refer to bytes outside of the
  // sections. kFull also reads every block, on up to `threads` threads. Throws std::bad_alloc.
  static absl::StatusOr<ColumnTable> Wrap(const Sections& sections, std::string name,
                                          VerifyLevel level, int threads,
                                          std::shared_ptr<const void> owner);

  uint64_t rows() const;
  absl::Span<const ColumnSchema> columns() const;
  // The column with this name.
  std::optional<size_t> Find(std::string_view name) const;
  // The number of rows in which a column is null. `column` must be an index into columns().
  uint64_t null_count(size_t column) const;
  // The bytes of all mapped sections, and of one column without shared ones.
  uint64_t memory_bytes() const;
  uint64_t column_bytes(size_t column) const;

  // Appends a column's value of each of these rows, in any order, to `values`, which must have the
  // column's type. On an error nothing is appended. Errors: InvalidArgument: another type, or there
  // is no such column; OutOfRange, with the first such id: there is no such row; DataLoss;
  // ResourceExhausted.
  absl::Status Gather(size_t column, absl::Span<const RowId> row_ids, ColumnValues* values) const;
  // As Gather, for the rows [begin, end).
  absl::Status Read(size_t column, uint64_t begin, uint64_t end, ColumnValues* values) const;

  // Writes the integers of a column of unsigned (signed) integers, 0 for null; `values` must be as
  // long as row_ids. Errors: those of Gather; InvalidArgument: the column has another type.
  absl::Status GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                              absl::Span<uint64_t> values) const;
  absl::Status GatherIntegers(size_t column, absl::Span<const RowId> row_ids,
                              absl::Span<int64_t> values) const;

 private:
  struct State;

  // Check arguments of Gather and Read.
  absl::Status CheckColumn(size_t column) const;
  absl::Status CheckType(size_t column, DataType type) const;
  absl::Status CheckRows(absl::Span<const RowId> row_ids) const;
  template <typename Integer>
  absl::Status GatherAs(size_t column, absl::Span<const RowId> row_ids,
                        absl::Span<Integer> values) const;

  std::shared_ptr<const State> state_;  // null: no columns, no rows
};

}  // namespace cairn
