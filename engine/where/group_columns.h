#pragma once

#include <atomic>
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

namespace cairn {

// The columns of a group's rows: what its indexes include, and their keys. Thread-safe. All but
// constructors throw std::bad_alloc.
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

  // The column that is called so (WhereOptions::columns). InvalidArgument where there is none, or
  // several are.
  absl::StatusOr<Column> Find(std::string_view name) const;
  // Sets *values to the rows' values; null for a row that the index has no entry of. Requires rows
  // of the space. InvalidArgument, naming the row, where one has several keys; DataLoss; Cancelled
  // once `cancelled`, which may be null, is set.
  absl::Status Read(absl::Span<const RowId> rows, const Column& column,
                    const std::atomic<bool>* cancelled, ColumnValues* values) const;

 private:
  absl::Status ReadIncluded(absl::Span<const RowId> rows, const Column& column,
                            ColumnValues* values) const;
  absl::Status ReadKeys(absl::Span<const RowId> rows, const Column& column,
                        const std::atomic<bool>* cancelled, ColumnValues* values) const;
  absl::Status SeveralKeys(size_t member, RowId row) const;

  const GroupMembers& members_;
  const std::shared_ptr<const RowSpace> space_;
};

}  // namespace cairn
