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

// The numbering of the rows that a version has left: row ids of its base and its delta -> those of
// the base that a merge of both makes. Immutable; safe from any number of threads. Takes 4 bytes a
// row.
//
// A merged base has, in primary-key order, the rows of the base but its dead ones, and those later
// rows that have entries.
class MergedRowIds {
 public:
  // On up to `threads` threads. Throws std::bad_alloc.
  MergedRowIds(const Delta& delta, int threads);

  // Rows of the merged base.
  uint64_t rows() const { return rows_; }

  // The new id of a row of the version; of a row that goes, that of the first row behind it which
  // stays, or rows(). So ids ascend with primary keys, though not strictly. Meaningless for later
  // rows without entries.
  RowId operator[](RowId row) const { return ids_[row]; }

  // The later rows that stay, by primary key.
  // Which of them stand among the base's rows [begin, end): those before one of these and behind
  // the base's row before it, and with end = base_rows also those behind all.
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
