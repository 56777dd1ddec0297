#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/btree_set.h"
#include "cairn/types.h"
#include "engine/delta/delta_rows.h"

namespace cairn {

// The rows that came after a base (DeltaRows) in the order of their primary keys, so that a range
// of them is deleted in time for the rows in it. Takes no memory until the first range, then about
// 6 bytes per row. Not thread-safe.
class NewRowOrder {
 public:
  // `rows` must outlive this.
  explicit NewRowOrder(const DeltaRows* rows) : ordered_(Less{rows}), end_(rows->base_rows()) {}

  // Takes note that a row, which perhaps had no entries, has some. Throws std::bad_alloc.
  void Add(RowId row) {
    if (row < end_) ordered_.insert(row);
  }
  // Appends the rows with primary keys in [from, to) to *taken, in the order of these, and forgets
  // them until they are added again: all rows that have entries, and perhaps some that have none.
  // Throws std::bad_alloc.
  void Take(std::string_view from, std::string_view to, std::vector<RowId>* taken);
  // Forgets all rows.
  void Clear();

 private:
  struct Less {
    using is_transparent = void;
    bool operator()(RowId a, RowId b) const { return rows->Less(a, b); }
    bool operator()(RowId a, std::string_view b) const { return rows->primary_key(a) < b; }
    bool operator()(std::string_view a, RowId b) const { return a < rows->primary_key(b); }
    const DeltaRows* rows;
  };

  absl::btree_set<RowId, Less> ordered_;
  RowId end_;  // rows from here on are not in ordered_ yet
};

}  // namespace cairn
