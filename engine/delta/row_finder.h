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

// A directory in memory to the blocks of a row table, for those who look up many primary keys: of
// each block's first key the eight bytes behind the prefix that all keys share, as an integer of
// the same order, under a FastTree. A key's own eight bytes lead it to its block, or to a few
// blocks where several first keys agree in them.
//
// Takes 0.6 bytes a row. A look-up takes 60 to 100 ns in place of the table's own 330 to 830
// (RowTable/places, against RowTable/find). Immutable; every method is safe from any number of
// threads.
class RowFinder {
 public:
  // Reads the first key of every block, on up to `threads` threads. DataLoss where these do not
  // ascend, or a block is damaged. Throws std::bad_alloc.
  static absl::StatusOr<std::shared_ptr<const RowFinder>> Build(RowTable table, int threads);

  // RowTable::Places. Ascending keys are found faster.
  absl::Status Places(absl::Span<const std::string_view> primary_keys,
                      absl::Span<RowPlace> places) const;

  uint64_t memory_bytes() const { return slices_.size() * sizeof(uint64_t) + tree_.memory_bytes(); }

 private:
  struct Search;

  explicit RowFinder(RowTable table) : table_(std::move(table)) {}

  // The first key of a block; false where the block is damaged.
  bool FirstKey(uint64_t block, std::string* key) const;
  // The slice that stands for a primary key among the blocks' ones.
  uint64_t Slice(std::string_view primary_key) const;
  absl::Status Locate(absl::Span<Search> searches) const;
  // Sets the block that a search ends in, where several begin with its slice.
  absl::Status ChooseBlock(Search* search) const;
  absl::Status FindInBlock(Search* search) const;

  RowTable table_;
  std::string prefix_;              // of all primary keys
  AlignedBuffer<uint64_t> slices_;  // one a block, ascending
  FastTreeNodes<uint64_t> tree_;
};

}  // namespace cairn
