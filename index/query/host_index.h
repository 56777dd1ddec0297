#pragma once

#include "cairn/ordered_index.h"

namespace cairn {

// An OrderedIndex in memory of the host, which its structure searches on the calling thread. A
// structure gives LowerBound; all else follows from it and from the run, and a structure overrides
// what it finds faster.
class HostIndex : public OrderedIndex {
 public:
  absl::Status Execute(const Batch& batch) const override;

 protected:
  using OrderedIndex::OrderedIndex;

  // Operation::kFind of a checked batch, of a run with entries. ResourceExhausted, or
  // std::bad_alloc, where memory does not suffice.
  virtual absl::Status Find(const Batch& batch) const;

 private:
  // Each writes an answer for each of the keys, which are of the run's kind; the run has entries.
  // May throw std::bad_alloc.
  //
  // positions[i] = the number of entries whose key is less than keys[i].
  virtual void LowerBound(KeyBatch keys, Position* positions) const = 0;
  // row_ids[i] = the first row of keys[i], or kNoRow.
  virtual void FindFirst(KeyBatch keys, RowId* row_ids) const;
  // found[i] = whether any entry has keys[i].
  virtual void Contains(KeyBatch keys, bool* found) const;

  template <typename Emit>
  void ForEachFirst(KeyBatch keys, Emit emit) const;
  absl::Status AppendRanges(const Batch& batch, const QueryOptions& options) const;
  template <typename Take>
  absl::Status ForEachRange(const Batch& batch, Take take) const;
};

}  // namespace cairn
