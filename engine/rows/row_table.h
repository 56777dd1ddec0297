#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/rows/row_table_format.h"
#include "index/files/section_file.h"
#include "index/machine/cold_reads.h"

namespace cairn {

// The position of a primary key among a table's rows.
struct RowPlace {
  std::string_view primary_key;
  RowId rank = 0;      // number of rows with a smaller primary key
  bool found = false;  // whether row `rank` has this primary key
};

// Maps row ids to primary keys and back, for the rows of an index's base. Immutable, mapped and
// thread-safe. Copies share the memory.
//
// Keys are stored in blocks of 16 (row_block.h) in row-id order. Finding the key of an id reads two
// cache lines. Finding the id of a key takes a binary search over separators, one per 1,024 rows,
// and another over 64 blocks. The batched form of each keeps many of these reads in flight.
//
// No method reads outside of the table's bytes, whatever they are. If they are inconsistent it
// returns DataLoss, naming the file.
class RowTable {
 public:
  // The bytes of the table's sections. kBlocks needs no alignment; the others need that of their
  // elements.
  struct Sections {
    std::string_view blocks;
    absl::Span<const RowTablePart> parts;
    absl::Span<const uint64_t> block_offsets;
    absl::Span<const uint64_t> separator_ends;
    std::string_view separators;
  };

  RowTable() = default;  // has no rows

  // Returns a table over bytes that `owner` keeps alive. `name` is the table's name in messages.
  // Reads every key, on up to `threads` threads. ContentCheck::kLater leaves the keys for
  // CheckKeys; until then, methods may return DataLoss or wrong answers. DataLoss, naming block or
  // row: the directory is inconsistent, a block is damaged, keys do not ascend, or a separator does
  // not separate them. Throws std::bad_alloc.
  static absl::StatusOr<RowTable> Wrap(const Sections& sections, std::string name, int threads,
                                       std::shared_ptr<const void> owner,
                                       ContentCheck check = ContentCheck::kNow);
  // Checks every key, as Wrap does.
  absl::Status CheckKeys(int threads) const;

  uint64_t rows() const { return rows_; }
  // Returns the size of the mapped sections in bytes.
  uint64_t memory_bytes() const;

  // Appends the primary key of each row. OutOfRange, naming the first invalid id: there is no such
  // row. DataLoss: the table is damaged. On error some of the keys have been appended.
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids, StringList* primary_keys) const;

  // Returns the row with this primary key, or kNoRow. DataLoss: the table is damaged.
  absl::StatusOr<RowId> Find(std::string_view primary_key) const;
  // Returns the number of rows with a smaller primary key. DataLoss: the table is damaged.
  absl::StatusOr<RowId> LowerBound(std::string_view primary_key) const;

  // The same for a batch of keys in any order. Both spans must have the same length.
  absl::Status Find(absl::Span<const std::string_view> primary_keys,
                    absl::Span<RowId> row_ids) const;
  absl::Status LowerBound(absl::Span<const std::string_view> primary_keys,
                          absl::Span<RowId> row_ids) const;
  // Sets places[i] to the position of primary_keys[i]. Both spans must have the same length.
  absl::Status Places(absl::Span<const std::string_view> primary_keys,
                      absl::Span<RowPlace> places) const;

 private:
  friend class RowFinder;
  struct Search;

  // Returns the index of the part that contains the row, block or separator of this rank. Requires
  // that the rank is less than the total.
  template <uint64_t RowTablePart::*kFirst>
  size_t PartOf(uint64_t rank) const;
  RowId FirstRowOf(uint64_t block) const;
  uint32_t RowsOf(uint64_t block) const;
  std::string_view Separator(uint64_t i) const;
  // Reads the header of a block.
  bool Parse(uint64_t block, uint32_t rows, RowBlock* parsed) const;
  void PrefetchBlock(uint64_t block) const;
  // The block with this row's key, and the number of the row in it.
  struct Place {
    uint64_t block;
    uint32_t rows;   // in the block
    uint32_t index;  // of the row
  };
  Place PlaceOf(RowId row) const;
  std::string_view BytesOf(uint64_t block) const;
  // Requests the pages of the blocks of the first of these rows, which exist. Returns their number.
  size_t RequestBlocks(absl::Span<const RowId> row_ids, ColdReads* reads) const;

  absl::Status CheckDirectory() const;
  absl::Status CheckBlocks(uint64_t first, uint64_t last) const;
  absl::Status Damaged(uint64_t block) const;
  absl::Status Locate(absl::Span<Search> searches) const;
  template <typename Take>
  absl::Status LocateAll(absl::Span<const std::string_view> primary_keys, Take take) const;

  Sections sections_;
  uint64_t rows_ = 0;
  std::string name_;
  std::shared_ptr<const void> owner_;
};

template <uint64_t RowTablePart::*kFirst>
size_t RowTable::PartOf(uint64_t rank) const {
  const RowTablePart* parts = sections_.parts.data();
  size_t begin = 0;
  for (size_t size = sections_.parts.size() - 1; size > 1;) {
    const size_t half = size / 2;
    begin = parts[begin + half].*kFirst <= rank ? begin + half : begin;
    size -= half;
  }
  return begin;
}

}  // namespace cairn
