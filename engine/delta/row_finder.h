#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cpu_fast/fast/fast_tree.h"
#include "engine/rows/row_table.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// An in-memory directory of the blocks of a row table, for many look-ups of primary keys. For each
// block it stores a slice of the first key: the eight bytes after the prefix that all keys share,
// as an integer in the same order. A FastTree searches the slices. A key's own slice leads to its
// block, or to a few blocks if the first keys of several have the same slice.
//
// Takes 0.6 bytes per row. A look-up takes 60 to 100 ns, compared with 330 to 830 ns in the table
// itself (benchmarks RowTable/places and RowTable/find). Immutable; every method is safe from any
// number of threads.
class RowFinder {
 public:
  // Reads the first key of every block, on up to `threads` threads. Errors: DataLoss if first keys
  // do not ascend or a block is damaged. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const RowFinder>> Build(RowTable table, int threads);

  // As RowTable::Places. Ascending keys are found faster.
  absl::Status Places(absl::Span<const std::string_view> primary_keys,
                      absl::Span<RowPlace> places) const;

  uint64_t memory_bytes() const { return slices_.size() * sizeof(uint64_t) + tree_.memory_bytes(); }

 private:
  struct Search;

  explicit RowFinder(RowTable table) : table_(std::move(table)) {}

  // Reads the first key of a block; returns false if the block is damaged.
  bool FirstKey(uint64_t block, std::string* key) const;
  // Returns the slice of a primary key.
  uint64_t Slice(std::string_view primary_key) const;
  absl::Status Locate(absl::Span<Search> searches) const;
  // Chooses among several blocks whose first keys have the slice of the search.
  absl::Status ChooseBlock(Search* search) const;
  absl::Status FindInBlock(Search* search) const;

  RowTable table_;
  std::string prefix_;              // of all primary keys
  AlignedBuffer<uint64_t> slices_;  // one per block, ascending
  FastTreeNodes<uint64_t> tree_;
};

}  // namespace cairn
