#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "engine/delta_rows.h"
#include "engine/position_set.h"

namespace cairn {

// Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
struct DeltaEntry {
  Key key;
  RowId row;
};

// Entries of a delta in (key, primary key) order, and a search structure over them. Immutable;
// every method is safe from any number of threads.
//
// That is not always the order of row ids, since those of rows that came after the base go by
// arrival. So the segment's run has for row ids the positions 0, 1, 2, …, and a search for the
// first row of a key finds the position of its first entry.
class DeltaSegment {
 public:
  // Copies the entries, which must be in order. Throws std::bad_alloc.
  template <typename Key>
  static absl::StatusOr<std::shared_ptr<const DeltaSegment>> Build(
      absl::Span<const DeltaEntry<Key>> entries);

  size_t size() const { return rows_.size(); }
  absl::Span<const RowId> rows() const { return rows_; }
  const OrderedIndex& index() const { return *index_; }
  const SortedRun& run() const { return index_->run(); }
  uint64_t memory_bytes() const {
    return rows_.size() * sizeof(RowId) + run().memory_bytes() + index_->memory_bytes();
  }

 private:
  DeltaSegment(std::unique_ptr<OrderedIndex> index, std::vector<RowId> rows)
      : index_(std::move(index)), rows_(std::move(rows)) {}

  std::unique_ptr<OrderedIndex> index_;
  std::vector<RowId> rows_;
};

// A segment as one version sees it.
struct DeltaPart {
  std::shared_ptr<const DeltaSegment> segment;
  PositionSet removed;  // positions of entries that are no longer there

  uint64_t entries() const { return segment->size() - removed.size(); }
};

// Merges what is left of `part` into `entries`, which are in order. Keys of bytes are views into
// the segment. Throws std::bad_alloc.
template <typename Key>
void MergePart(const DeltaPart& part, const DeltaRows& rows, std::vector<DeltaEntry<Key>>* entries);

}  // namespace cairn
