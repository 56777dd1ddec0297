#pragma once

#include <cstdint>
#include <string>

#include "index/query/host_index.h"

namespace cairn {

// Binary search in the run itself ("cpu:sorted_array"), for every kind of key, without additional
// memory or a build. The searches of a group of queries advance together, without branches, and
// prefetch the keys that they compare next, so that their cache misses overlap.
class SortedArray : public HostIndex {
 public:
  explicit SortedArray(SortedRun run) : HostIndex(std::move(run)) {}

  std::string description() const override { return "cpu:sorted_array"; }
  uint64_t memory_bytes() const override { return 0; }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override;
};

}  // namespace cairn
