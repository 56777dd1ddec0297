#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/simd/simd_level.h"

namespace cairn {

// A FAST tree with compressed leaves ("cpu:fast,compressed"), after Kim et al., FAST (SIGMOD 2010),
// section 6.2. The run's keys are stored as pages of deltas (CompressedPages), which are searched
// without decompression, under a FastTree over the pages' minima. A 32-bit key takes 1.15 bytes
// with 8-bit deltas and 2.15 bytes with 16-bit deltas, in addition to the run: operations other
// than LowerBound and FindFirst read the run's own keys. This index is faster than cpu:fast for
// dense 64-bit keys (46 against 54 ns per position of 2^24 keys), and equal or slower for 32-bit
// keys (35 against 27 ns), by PointLookup/cpu:fast(,compressed)?/.*/position/(uniform|dense). It is
// slower for scattered keys, whose pages are longer than a leaf of FastTree.
//
// Builds on all cores. If `simd` is empty, uses DefaultSimdLevel(). Errors: Unimplemented for
// byte-string keys; Unavailable for a SIMD level that the processor lacks; InvalidArgument if
// CAIRN_SIMD names no level. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCompressedTree(
    SortedRun run, std::optional<SimdLevel> simd = std::nullopt);

}  // namespace cairn
