#pragma once

#include <cstdint>
#include <string>

#include "index/query/host_index.h"

namespace cairn {

// SortedSearch::kMerge: an index over a run of 32- or 64-bit keys for batches whose keys ascend. It
// executes each batch in one pass along the run, from the batch's first key to its last. This is
// the search of sorted queries of Kim et al., FAST (SIGMOD 2010), section 7. Uses no memory of its
// own.
class MergeSearch final : public HostIndex {
 public:
  explicit MergeSearch(SortedRun run) : HostIndex(std::move(run)) {}

  std::string description() const override { return "cpu:merge"; }
  uint64_t memory_bytes() const override { return 0; }

 private:
  // Both require that the keys ascend.
  void LowerBound(KeyBatch keys, Position* positions) const override;
  void FindFirst(KeyBatch keys, RowId* row_ids) const override;
};

}  // namespace cairn
