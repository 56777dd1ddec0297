#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Maps the row ids of a version's base and delta to those of the base that merges both. Immutable
// and thread-safe. Takes 4 bytes per row.
//
// A merged base has the live rows of the base, and the later rows that have entries, in primary-key
// order.
class MergedRowIds {
 public:
  // Uses up to `threads` threads. Throws std::bad_alloc.
  MergedRowIds(const Delta& delta, int threads);

  // Returns the number of rows of the merged base.
  uint64_t rows() const { return rows_; }

  // Returns the new id of a row of the version. A removed row has the id of the next remaining row,
  // or rows(). So ids ascend with primary keys, though not strictly. The result is meaningless for
  // later rows without entries.
  RowId operator[](RowId row) const { return ids_[row]; }

  // Returns the remaining later rows among the base's rows [begin, end), by primary key: those that
  // follow row `begin` - 1 and precede one of these rows. If `end` is base_rows, it includes the
  // rows after the base's last row.
  absl::Span<const RowId> LaterRowsAmong(RowId begin, RowId end) const;

 private:
  void FindLaterRows(const Delta& delta);
  // Numbers the base's rows [begin, end) and the later rows among them.
  void Number(const PositionSet& dead_rows, RowId begin, RowId end);

  std::shared_ptr<const DeltaRows> delta_rows_;
  uint64_t rows_;
  AlignedBuffer<RowId> ids_;
  std::vector<RowId> later_rows_;
};

}  // namespace cairn
