#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/simd_level.h"

namespace cairn {

// A FAST tree with compressed leaves ("cpu:fast,compressed"), after Kim et al., FAST (SIGMOD 2010),
// section 6.2: the run's keys in pages of deltas (CompressedPages), which are searched as they are,
// and a FastTree over the pages' minima. Where keys are dense, a search waits for fewer cache lines
// than in the run's own, and the tree is a quarter as large: 32-bit keys take 1.1 bytes in pages of
// 8-bit deltas, 2.1 of 16-bit ones. Where they are not, a page is longer than a leaf of FastTree,
// which is the faster structure then. The run's own keys are read by other operations than
// LowerBound and FindFirst only.
class CompressedTree : public OrderedIndex {
 public:
  // Builds on all cores; `simd` none: DefaultSimdLevel(). Unimplemented for keys of bytes,
  // Unavailable for a SIMD level that the processor lacks, InvalidArgument for a CAIRN_SIMD that
  // names none. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<CompressedTree>> Build(
      SortedRun run, std::optional<SimdLevel> simd = std::nullopt);

 protected:
  using OrderedIndex::OrderedIndex;
};

}  // namespace cairn
