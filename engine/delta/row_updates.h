#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// The latest states of some rows, column-wise: what a DeltaWriter applies. The order of rows does
// not matter; the answers are those of an index in which first every row in a deleted range is
// gone, and then each row that is listed has the keys that are listed and no others. Reusable.
struct RowUpdates {
  explicit RowUpdates(PhysicalType kind = PhysicalType::kU32) : keys(kind) {}

  StringList primary_keys;  // each row at most once
  // Row i's secondary keys are keys[row_ends[i - 1]] … keys[row_ends[i] - 1], in any order; one
  // that repeats counts once. None: the row is deleted, or has no key any more.
  EncodedKeys keys;
  std::vector<uint64_t> row_ends;

  // Of an index that includes columns, the tuple of each row (index/columns/tuple.h), of one
  // without keys an empty string; of any other index empty.
  StringList tuples;

  // Rows that were deleted by ranges of primary keys, [deleted_from[i], deleted_to[i]). A range
  // whose ends have crossed is empty.
  StringList deleted_from;
  StringList deleted_to;

  size_t rows() const { return primary_keys.size(); }

  // Ends the row whose keys have been appended to `keys` since the row before.
  void EndRow(std::string_view primary_key) {
    primary_keys.Append(primary_key);
    row_ends.push_back(keys.size());
  }
  void EndRow(std::string_view primary_key, std::string_view tuple) {
    EndRow(primary_key);
    tuples.Append(tuple);
  }
  void DeleteRange(std::string_view from, std::string_view to) {
    deleted_from.Append(from);
    deleted_to.Append(to);
  }
  // Removes everything, and keeps the capacity.
  void Clear() {
    primary_keys.Clear();
    keys.Clear(keys.kind());
    row_ends.clear();
    tuples.Clear();
    deleted_from.Clear();
    deleted_to.Clear();
  }
};

}  // namespace cairn
