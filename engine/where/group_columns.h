#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/where/row_space.h"
#include "engine/where/where_node.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// The columns of a group's rows: the included columns and the keys of its indexes. Thread-safe. All
// methods except the constructor throw std::bad_alloc.
class GroupColumns {
 public:
  struct Column {
    size_t member = 0;  // the index's first shard
    bool is_key = false;
    size_t number = 0;  // of the included column, or of the key's part
    DataType type = DataType::kU64;
  };

  GroupColumns(const GroupMembers* members, std::shared_ptr<const RowSpace> space)
      : members_(*members), space_(std::move(space)) {}

  // Finds a column by name (WhereOptions::columns). InvalidArgument: no column or several columns
  // have this name.
  absl::StatusOr<Column> Find(std::string_view name) const;
  // Sets *values to the rows' values; null for a row without an entry in the index. Requires rows
  // of the space. InvalidArgument, naming the row: it has several keys. DataLoss: the index is
  // damaged. Returns the error of `stop` once it has one.
  absl::Status Read(absl::Span<const RowId> rows, const Column& column, const StopCondition& stop,
                    ColumnValues* values) const;

 private:
  absl::Status ReadIncluded(absl::Span<const RowId> rows, const Column& column,
                            ColumnValues* values) const;
  absl::Status ReadKeys(absl::Span<const RowId> rows, const Column& column,
                        const StopCondition& stop, ColumnValues* values) const;
  absl::Status SeveralKeys(size_t member, RowId row) const;

  const GroupMembers& members_;
  const std::shared_ptr<const RowSpace> space_;
};

}  // namespace cairn
