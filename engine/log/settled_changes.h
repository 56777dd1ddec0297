#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/log/row_changes.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// The net effect of changes, to be applied to the previous rows: first the rows with keys in
// deleted_ranges() are deleted, then rows() are added, changed or deleted. Only the last change of
// a key counts, and a later range deletion overrides it.
//
// Reusable: no allocation once there is room. Views point into the RowChanges that were settled,
// and are valid until these change. Not thread-safe; throws std::bad_alloc.
class SettledChanges {
 public:
  // The keys from `lower` up to but not including `upper`.
  struct Range {
    std::string_view lower;
    std::string_view upper;
  };

  void Settle(const RowChanges& changes);

  // Ascending; ranges neither overlap nor touch.
  absl::Span<const Range> deleted_ranges() const { return deleted_ranges_; }
  // Strictly ascending by key; without kDeleteRange, and without kDelete in a deleted range.
  absl::Span<const RowChange> rows() const { return rows_; }

 private:
  struct Deletion {
    Range range;
    uint32_t position;  // index of the change
  };

  void SettleRanges();
  // Returns whether a range deletion after `position` contains `key`; keys must ascend from call to
  // call.
  bool IsDeletedAfter(uint32_t position, std::string_view key);

  std::vector<BytesEntry> sorted_;
  std::vector<Deletion> deletions_;  // in ascending order of lower
  size_t next_deletion_ = 0;         // the first one whose lower is greater than the last key
  std::vector<const Deletion*>
      heap_;  // earlier ones that may still contain a key, the latest on top
  std::vector<Range> deleted_ranges_;
  std::vector<RowChange> rows_;
};

}  // namespace cairn
