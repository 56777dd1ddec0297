#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <string_view>

#include "cairn/types.h"
#include "engine/rows/row_table.h"
#include "index/machine/byte_heap.h"
#include "index/machine/chunked_array.h"

namespace cairn {

// The rows that came after a base: row id -> primary key and rank. Their ids follow the base's, in
// the order in which they came. A row that is deleted and comes back has the id that it had, until
// DeltaWriter::Renumber makes other DeltaRows of those that are left.
//
// Grows at its end, and what is there never moves. One thread appends; any number of others may at
// the same time read the rows that were there when they were told of them (Delta::end_row).
class DeltaRows {
 public:
  explicit DeltaRows(RowId base_rows) : base_rows_(base_rows), ascending_from_(base_rows) {}
  DeltaRows(const DeltaRows&) = delete;
  DeltaRows& operator=(const DeltaRows&) = delete;

  RowId base_rows() const { return base_rows_; }

  // Each requires a row of these, not one of the base's.
  std::string_view primary_key(RowId row) const {
    const Row& at = At(row);
    return {at.primary_key, at.primary_key_bytes};
  }
  RowId rank(RowId row) const { return At(row).rank; }

  // Whether row `a`'s primary key is less than row `b`'s; for rows of the base, too.
  bool Less(RowId a, RowId b) const {
    if (a < base_rows_ && b < base_rows_) return a < b;
    // Rows that came in order need not be read, which would miss the cache twice.
    const RowId ascending_from = ascending_from_.load(std::memory_order_relaxed);
    if (a >= ascending_from && b >= ascending_from) return a < b;
    const RowId rank_a = a < base_rows_ ? a : rank(a), rank_b = b < base_rows_ ? b : rank(b);
    if (rank_a != rank_b) return rank_a < rank_b;
    // Before the base's row of this rank stand those that came later.
    if (a < base_rows_ || b < base_rows_) return b < base_rows_;
    return primary_key(a) < primary_key(b);
  }
  // How row `row`'s primary key compares with that of `place`.
  std::strong_ordering Compare(RowId row, const RowPlace& place) const {
    if (row < base_rows_) {
      if (row != place.rank) return row <=> place.rank;
      return place.found ? std::strong_ordering::equal : std::strong_ordering::greater;
    }
    if (rank(row) != place.rank) return rank(row) <=> place.rank;
    return primary_key(row) <=> place.primary_key;
  }

  // Bytes of all rows, whoever knows of them; by any thread.
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }

  // What follows is for the one thread that appends.

  // The id that the next row gets.
  RowId end() const { return base_rows_ + rows_.size(); }
  // Adds a row; requires end() < kMaxEntries. Throws std::bad_alloc, and then has added none.
  RowId Append(std::string_view primary_key, RowId rank);
  // Takes back the rows from `end` on, which no one else has been told of, and their memory.
  void Truncate(RowId end);

 private:
  struct Row {
    const char* primary_key;
    uint32_t primary_key_bytes;
    RowId rank;
  };
  const Row& At(RowId row) const { return rows_[row - base_rows_]; }

  const RowId base_rows_;
  // Of rows from here on each has a greater primary key than the one before. Whoever was told of
  // some rows sees what it was then, or a later value, and both hold for these rows.
  std::atomic<RowId> ascending_from_;
  ChunkedArray<Row> rows_;
  ByteHeap primary_keys_;
  std::atomic<uint64_t> memory_bytes_ = 0;
};

}  // namespace cairn
