#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/simd/simd_level.h"

namespace cairn {

// A FAST tree with compressed leaves ("cpu:fast,compressed"), after Kim et al., FAST (SIGMOD 2010),
// section 6.2: the run's keys in pages of deltas (CompressedPages), which are searched as they are,
// and a FastTree over the pages' minima. A 32-bit key takes 1.15 bytes where deltas are of 8 bits,
// 2.15 where they are of 16, all of it beyond the run, whose own keys only operations other than
// LowerBound and FindFirst read. It is the faster of the two for dense 64-bit keys, on a par or
// slower for 32-bit ones (docs/results/2026-11-21-fast-paper.md), and slower for scattered keys,
// whose pages are longer than a leaf of FastTree.
//
// Builds on all cores; `simd` none: DefaultSimdLevel(). Unimplemented for keys of bytes,
// Unavailable for a SIMD level that the processor lacks, InvalidArgument for a CAIRN_SIMD that
// names none. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCompressedTree(
    SortedRun run, std::optional<SimdLevel> simd = std::nullopt);

}  // namespace cairn
