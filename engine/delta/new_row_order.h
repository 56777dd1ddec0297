#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/btree_set.h"
#include "cairn/types.h"
#include "engine/delta/delta_rows.h"

namespace cairn {

// The new rows (DeltaRows) in primary-key order, so that the time to delete a range of them is
// proportional to its rows. Takes no memory until the first range, then about 6 bytes per row. Not
// thread-safe.
class NewRowOrder {
 public:
  // `rows` must outlive this.
  explicit NewRowOrder(const DeltaRows* rows) : ordered_(Less{rows}), end_(rows->base_rows()) {}

  // Records that a row has entries, even if it had none before. Throws std::bad_alloc.
  void Add(RowId row) {
    if (row < end_) ordered_.insert(row);
  }
  // Appends the rows with primary keys in [from, to) to *taken, in primary-key order, and forgets
  // them until they are added again. These are all such rows with entries, and possibly some
  // without. Throws std::bad_alloc.
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
  RowId end_;  // rows from this one on are not in ordered_ yet
};

}  // namespace cairn
