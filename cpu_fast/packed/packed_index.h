#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/simd/simd_level.h"

namespace cairn {

// The structure that maps a key to its packed leaf.
enum class LeafDirectory : uint8_t {
  kAuto,   // cells where the keys are spread evenly enough, else the tree
  kCells,  // CellDirectory
  kTree,   // FastTreeNodes over the leaves' separators
};

struct PackedIndexOptions {
  LeafDirectory directory = LeafDirectory::kAuto;
  // Bits of a key that leaves keep: 16, 32 or 64, at most the key's. 0: what takes least memory.
  int bits = 0;
  // The instruction set; none: DefaultSimdLevel().
  std::optional<SimdLevel> simd;
};

// Packed leaves under a directory ("cpu:packed"): keys and row ids side by side in lines of 64
// bytes, and a directory small enough to stay in a cache. A lookup reads one line of each, where a
// search tree over a run reads one a level, then the row id's.
//
// Takes 6.4 to 9.2 bytes an entry of 32-bit keys, 6.4 to 12.8 of 64-bit keys, whatever they are,
// and up to a quarter of that for the directory; hardly more while it is built. With fewer `bits`
// than suit the keys, up to 128 bytes an entry.
//
// Builds on all cores. Unimplemented for keys of bytes; InvalidArgument for bits that the keys do
// not have; FailedPrecondition where kCells is asked for and the keys are too uneven for it; for
// `simd` see FastTreeOptions. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakePackedIndex(
    SortedRun run, const PackedIndexOptions& options = {});

}  // namespace cairn
