#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/log/row_changes.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// What changes come to, to be applied to the rows that were there before: first the rows with keys
// in deleted_ranges() go, then rows() come, change or go. For every key this is its last change,
// and a range deletion after that wins over it.
//
// Reusable: no allocation once there is room. Views point into the RowChanges that were settled and
// are valid as long as they are not changed. Not thread-safe; throws std::bad_alloc.
class SettledChanges {
 public:
  // The keys from `lower` up to but not including `upper`.
  struct Range {
    std::string_view lower;
    std::string_view upper;
  };

  void Settle(const RowChanges& changes);

  // Ascending; they neither overlap nor touch.
  absl::Span<const Range> deleted_ranges() const { return deleted_ranges_; }
  // Strictly ascending by key; never kDeleteRange, and no kDelete in a deleted range.
  absl::Span<const RowChange> rows() const { return rows_; }

 private:
  struct Deletion {
    Range range;
    uint32_t position;  // among the changes
  };

  void SettleRanges();
  // Whether a range deletion after `position` holds `key`; keys must ascend from call to call.
  bool IsDeletedAfter(uint32_t position, std::string_view key);

  std::vector<BytesEntry> sorted_;
  std::vector<Deletion> deletions_;  // in ascending order of lower
  size_t next_deletion_ = 0;         // the first whose lower is above the last key asked for
  std::vector<const Deletion*>
      heap_;  // those before it that may hold a key still, the latest on top
  std::vector<Range> deleted_ranges_;
  std::vector<RowChange> rows_;
};

}  // namespace cairn
