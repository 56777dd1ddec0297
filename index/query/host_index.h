#pragma once

#include "cairn/ordered_index.h"

namespace cairn {

// An OrderedIndex in host memory that searches on the calling thread. kFindFirst also takes
// Batch::rows, which it sets to the row ids in shard 0. A structure implements LowerBound; all
// other operations follow from it and the run. A structure overrides those that it answers faster.
class HostIndex : public OrderedIndex {
 public:
  absl::Status Execute(const Batch& batch) const override;

 protected:
  using OrderedIndex::OrderedIndex;

  // Answers Operation::kFind for a checked batch over a run with entries. If memory runs out:
  // ResourceExhausted or std::bad_alloc.
  virtual absl::Status Find(const Batch& batch) const;

 private:
  // Each writes one answer per key. The keys are of the run's kind, and the run has entries. May
  // throw std::bad_alloc.
  //
  // positions[i] = the number of entries whose key is less than keys[i].
  virtual void LowerBound(KeyBatch keys, Position* positions) const = 0;
  // row_ids[i] = the first row of keys[i], or kNoRow.
  virtual void FindFirst(KeyBatch keys, RowId* row_ids) const;
  // found[i] = whether any entry has keys[i].
  virtual void Contains(KeyBatch keys, bool* found) const;

  void FindFirstRows(KeyBatch keys, GlobalRowId* rows) const;
  template <typename Emit>
  void ForEachFirst(KeyBatch keys, Emit emit) const;
  absl::Status AppendRanges(const Batch& batch, const QueryOptions& options) const;
  template <typename Take>
  absl::Status ForEachRange(const Batch& batch, Take take) const;
};

}  // namespace cairn
