#include "engine/delta/delta_rows.h"

#include <algorithm>

namespace cairn {

RowId DeltaRows::Append(std::string_view primary_key, RowId rank) {
  rows_.MakeRoom();
  const std::string_view copy = primary_keys_.Append(primary_key);
  const RowId row = end();
  if (row > base_rows_ && this->primary_key(row - 1) >= primary_key) ascending_from_ = row;
  rows_.Append({copy.data(), static_cast<uint32_t>(copy.size()), rank});
  memory_bytes_ = rows_.memory_bytes() + primary_keys_.memory_bytes();
  return row;
}

void DeltaRows::Truncate(RowId end) {
  if (end == this->end()) return;
  // Primary keys are stored in the order of the rows, so the keys to keep end where the first
  // removed key begins.
  primary_keys_.Truncate(At(end).primary_key);
  rows_.Truncate(end - first_);
  ascending_from_ = std::min(ascending_from_.load(), end);
  memory_bytes_ = rows_.memory_bytes() + primary_keys_.memory_bytes();
}

}  // namespace cairn
