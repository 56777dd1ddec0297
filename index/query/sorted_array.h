#pragma once

#include <cstdint>
#include <string>

#include "cairn/ordered_index.h"

namespace cairn {

// Binary search over the run itself ("cpu:sorted_array"): no memory beyond the run, no build, every
// kind of key. The searches of a group of queries advance in step, without branches, and prefetch
// what they compare next, so that their cache misses overlap.
class SortedArray : public OrderedIndex {
 public:
  explicit SortedArray(SortedRun run) : OrderedIndex(std::move(run)) {}

  std::string description() const override { return "cpu:sorted_array"; }
  uint64_t memory_bytes() const override { return 0; }
  absl::Status LowerBound(KeyBatch keys, absl::Span<Position> positions) const override;
};

}  // namespace cairn
