#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cairn/types.h"
#include "engine/rows/row_table.h"

namespace cairn {

// The rows that came after a base: row id -> primary key and rank. Their ids go on behind the
// base's, in the order in which they came, and stay theirs for as long as the base is: a row that
// is deleted and comes back has the id that it had.
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
  RowId end() const { return base_rows_ + size_; }
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
  // Rows stand in chunks that double: chunk c > 0 has those from kFirstChunk << (c - 1) on.
  static constexpr int kLog2FirstChunk = 8;
  static constexpr size_t kHeapChunkBytes = size_t{64} << 10;

  // Primary keys, one behind the other.
  struct HeapChunk {
    std::unique_ptr<char[]> bytes;
    size_t size;
  };

  static size_t ChunkOf(uint32_t i) {
    return static_cast<size_t>(std::bit_width(i >> kLog2FirstChunk));
  }
  static uint32_t FirstOf(size_t chunk) {
    return chunk == 0 ? 0 : uint32_t{1} << (kLog2FirstChunk + chunk - 1);
  }
  const Row& At(RowId row) const {
    const uint32_t i = row - base_rows_;
    const size_t chunk = ChunkOf(i);
    return chunks_[chunk][i - FirstOf(chunk)];
  }

  const RowId base_rows_;
  uint32_t size_ = 0;
  // Of rows from here on each has a greater primary key than the one before. Whoever was told of
  // some rows sees what it was then, or a later value, and both hold for these rows.
  std::atomic<RowId> ascending_from_;
  std::array<std::unique_ptr<Row[]>, 33 - kLog2FirstChunk> chunks_;
  std::vector<HeapChunk> heap_;
  char* heap_at_ = nullptr;
  size_t heap_left_ = 0;  // bytes from heap_at_ on
  std::atomic<uint64_t> memory_bytes_ = 0;
};

}  // namespace cairn
