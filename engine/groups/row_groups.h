#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "engine/groups/value_codes.h"

namespace cairn {

// Numbers groups of rows with equal values in some columns, from 0 on, as their first rows come; of
// no columns there is one group, with or without rows. Values are equal as in ValueCodes. Throws
// std::bad_alloc, and is of no use then.
class RowGrouper {
 public:
  explicit RowGrouper(absl::Span<const DataType> types);

  // Sets groups[i] to the group of row i, which has value i of each of these columns.
  void Add(absl::Span<const ColumnValues> columns, absl::Span<uint32_t> groups);

  size_t groups() const { return groups_; }
  // Each group's value in a column.
  ColumnValues KeysOf(size_t column) const;
  // "group 'ASIA',1997", or "all rows".
  std::string Described(size_t group) const;

 private:
  uint32_t CodeOf(size_t group, size_t column) const {
    return codes_[group * values_.size() + column];
  }

  std::vector<ValueCodes> values_;  // of each column
  // [c]: from a number for the values of columns up to c, and that of column c + 1, to one for
  // both; the last one's are the groups.
  std::vector<absl::flat_hash_map<uint64_t, uint32_t>> pairs_;
  size_t groups_ = 0;
  std::vector<uint32_t> codes_;  // of each group, one a column
  std::vector<uint32_t> added_;  // scratch: of each column, one a row
};

}  // namespace cairn
