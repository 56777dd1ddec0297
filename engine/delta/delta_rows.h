#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "cairn/types.h"
#include "engine/rows/row_table.h"
#include "index/machine/byte_heap.h"
#include "index/machine/chunked_array.h"

namespace cairn {

// The rows that were added after the base was built: row id -> primary key and rank. Their ids
// follow the base's, in the order of arrival. A row that is deleted and added again keeps its id,
// until DeltaWriter::Renumber makes new DeltaRows of the remaining rows.
//
// The table grows at its end, and its rows never move. One thread appends. Concurrently, any number
// of threads may read the rows before an end that they got from a version (Delta::end_row).
class DeltaRows {
 public:
  explicit DeltaRows(RowId base_rows)
      : base_rows_(base_rows), first_(base_rows), ascending_from_(base_rows) {}
  // Begins with the rows of `parent` before `end`, and appends to this table only.
  DeltaRows(std::shared_ptr<const DeltaRows> parent, RowId end)
      : base_rows_(parent->base_rows_),
        first_(end),
        parent_(std::move(parent)),
        ascending_from_(end) {}
  DeltaRows(const DeltaRows&) = delete;
  DeltaRows& operator=(const DeltaRows&) = delete;

  RowId base_rows() const { return base_rows_; }

  // These two require a new row, not a row of the base.
  std::string_view primary_key(RowId row) const {
    const Row& at = At(row);
    return {at.primary_key, at.primary_key_bytes};
  }
  RowId rank(RowId row) const { return At(row).rank; }

  // Returns whether row `a`'s primary key is less than row `b`'s; either may be a row of the base.
  bool Less(RowId a, RowId b) const {
    if (a < base_rows_ && b < base_rows_) return a < b;
    // Rows in ascending order need not be read. Each read would be a cache miss.
    const RowId ascending_from = ascending_from_.load(std::memory_order_relaxed);
    if (a >= ascending_from && b >= ascending_from) return a < b;
    const RowId rank_a = a < base_rows_ ? a : rank(a), rank_b = b < base_rows_ ? b : rank(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    // New rows of this rank precede the base's row of the same number.
    if (a < base_rows_ || b < base_rows_) return b < base_rows_;
    return primary_key(a) < primary_key(b);
  }
  // Compares row `row`'s primary key with that of `place`.
  std::strong_ordering Compare(RowId row, const RowPlace& place) const {
    if (row < base_rows_) {
      if (row != place.rank) return row <=> place.rank;
      return place.found ? std::strong_ordering::equal : std::strong_ordering::greater;
    }
    if (rank(row) != place.rank) return rank(row) <=> place.rank;
    return primary_key(row) <=> place.primary_key;
  }

  // Bytes of all rows. Any thread may call it.
  uint64_t memory_bytes() const {
    return memory_bytes_.load(std::memory_order_relaxed) +
           (parent_ == nullptr ? 0 : parent_->memory_bytes());
  }

  // Only the one thread that appends may call the methods below.

  // The id of the next row.
  RowId end() const { return first_ + rows_.size(); }
  // Appends a row; requires end() < kMaxEntries. Throws std::bad_alloc, and then nothing has
  // changed.
  RowId Append(std::string_view primary_key, RowId rank);
  // Removes the rows from `end` on and frees their memory. No other thread may have their ids.
  void Truncate(RowId end);

 private:
  struct Row {
    const char* primary_key;
    uint32_t primary_key_bytes;
    RowId rank;
  };
  const Row& At(RowId row) const {
    if (row < first_) [[unlikely]]
      return parent_->At(row);
    return rows_[row - first_];
  }

  const RowId base_rows_;
  const RowId first_;  // of the rows that are not the parent's
  const std::shared_ptr<const DeltaRows> parent_;
  // From this row on, each row has a greater primary key than the row before. A reader of some rows
  // sees the value of the time when it got their end, or a later one. Both are correct for these
  // rows.
  std::atomic<RowId> ascending_from_;
  ChunkedArray<Row> rows_;
  ByteHeap primary_keys_;
  std::atomic<uint64_t> memory_bytes_ = 0;
};

}  // namespace cairn
