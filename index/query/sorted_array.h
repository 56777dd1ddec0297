#pragma once

#include <cstdint>
#include <string>

#include "index/query/host_index.h"

namespace cairn {

// Binary search over the run itself ("cpu:sorted_array"): no memory beyond the run, no build, every
// kind of key. The searches of a group of queries advance in step, without branches, and prefetch
// what they compare next, so that their cache misses overlap.
class SortedArray : public HostIndex {
 public:
  explicit SortedArray(SortedRun run) : HostIndex(std::move(run)) {}

  std::string description() const override { return "cpu:sorted_array"; }
  uint64_t memory_bytes() const override { return 0; }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override;
};

}  // namespace cairn
