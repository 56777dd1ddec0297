#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/types.h"

namespace cairn {

// The latest states of some rows, column-wise; a DeltaWriter applies them. The order of the rows
// does not matter. First all rows in the deleted ranges are removed; then each listed row gets
// exactly the listed keys. Reusable.
struct RowUpdates {
  explicit RowUpdates(PhysicalType kind = PhysicalType::kU32) : keys(kind) {}

  StringList primary_keys;  // each row at most once
  // Row i's secondary keys are keys[row_ends[i - 1]] … keys[row_ends[i] - 1], in any order;
  // duplicates count once. A row without keys is deleted, or has no key any more.
  EncodedKeys keys;
  std::vector<uint64_t> row_ends;

  // If the index includes columns, the tuple of each row (index/columns/tuple.h); the empty string
  // for a row without keys. Otherwise empty.
  StringList tuples;

  // Ranges of primary keys whose rows were deleted, [deleted_from[i], deleted_to[i]). A range is
  // empty if its end is not greater than its begin.
  StringList deleted_from;
  StringList deleted_to;

  size_t rows() const { return primary_keys.size(); }

  // Ends the row whose keys were appended to `keys` since the previous row.
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
  // Removes everything, but keeps the capacity.
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
