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

namespace cairn {

// Where a primary key belongs among a table's rows.
struct RowPlace {
  std::string_view primary_key;
  RowId rank = 0;      // the number of rows whose primary key is less
  bool found = false;  // whether row `rank` has this one
};

// Row id -> primary key and back, for the rows of an index's base. Immutable and mapped; every
// method is safe from any number of threads. A copy shares the memory.
//
// Keys stand in blocks of 16 (row_block.h) in row-id order: a key costs two cache lines from an id.
// From a key it takes a binary search over separators, one for 1,024 rows, and one over 64 blocks.
// Both ways have a batched form that keeps many of these reads in flight.
//
// Whatever the bytes are, no method reads outside of them: where they contradict one another it
// returns DataLoss, naming the file.
class RowTable {
 public:
  // The table's bytes, section by section. kBlocks needs no alignment, the others that of their
  // elements.
  struct Sections {
    std::string_view blocks;
    absl::Span<const RowTablePart> parts;
    absl::Span<const uint64_t> block_offsets;
    absl::Span<const uint64_t> separator_ends;
    std::string_view separators;
  };

  RowTable() = default;  // no rows

  // A table over bytes that `owner` keeps alive; `name` is what messages call it. DataLoss, naming
  // block or row, where the directory contradicts itself, a block cannot be read, keys do not
  // ascend or separators do not part them: every key is read, on up to `threads` threads.
  // ContentCheck::kLater leaves the keys for CheckKeys: until then, methods may give DataLoss or
  // wrong answers. Throws std::bad_alloc.
  static absl::StatusOr<RowTable> Wrap(const Sections& sections, std::string name, int threads,
                                       std::shared_ptr<const void> owner,
                                       ContentCheck check = ContentCheck::kNow);
  // Reads every key, as Wrap does.
  absl::Status CheckKeys(int threads) const;

  uint64_t rows() const { return rows_; }
  // Bytes of the mapped sections.
  uint64_t memory_bytes() const;

  // Appends the primary key of each row. OutOfRange, naming the first one, for an id that is no
  // row's; DataLoss. After an error the column holds some of the keys.
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids, StringList* primary_keys) const;

  // The row with this primary key, or kNoRow. DataLoss.
  absl::StatusOr<RowId> Find(std::string_view primary_key) const;
  // The number of rows whose primary key is less. DataLoss.
  absl::StatusOr<RowId> LowerBound(std::string_view primary_key) const;

  // Likewise for a batch, in any order; row_ids is as long as primary_keys.
  absl::Status Find(absl::Span<const std::string_view> primary_keys,
                    absl::Span<RowId> row_ids) const;
  absl::Status LowerBound(absl::Span<const std::string_view> primary_keys,
                          absl::Span<RowId> row_ids) const;
  // Both at once: places[i] is of primary_keys[i]. As many places as keys.
  absl::Status Places(absl::Span<const std::string_view> primary_keys,
                      absl::Span<RowPlace> places) const;

 private:
  friend class RowFinder;
  struct Search;

  // The index in parts_ of the part that holds what has this rank; requires that it be less than
  // the total.
  template <uint64_t RowTablePart::*kFirst>
  size_t PartOf(uint64_t rank) const;
  RowId FirstRowOf(uint64_t block) const;
  uint32_t RowsOf(uint64_t block) const;
  std::string_view Separator(uint64_t i) const;
  // Reads the header of a block.
  bool Parse(uint64_t block, uint32_t rows, RowBlock* parsed) const;
  void PrefetchBlock(uint64_t block) const;

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
