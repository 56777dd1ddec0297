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
  kAuto,   // cells if the keys are distributed evenly enough, otherwise the tree
  kCells,  // CellDirectory
  kTree,   // FastTreeNodes over the leaves' separators
};

struct PackedIndexOptions {
  LeafDirectory directory = LeafDirectory::kAuto;
  // Bits of a key to keep in leaves: 16, 32 or 64, at most the key's. 0: the least memory.
  int bits = 0;
  // The instruction set. If empty, DefaultSimdLevel() is used.
  std::optional<SimdLevel> simd;
};

// Builds packed leaves under a directory ("cpu:packed"). Each leaf is a 64-byte line of keys with
// their row ids, and the directory is small enough to stay in a cache. A lookup reads one line of
// each; a search tree over a run reads one line per level and then the row id's line.
//
// Takes 6.4 to 9.2 bytes per entry with 32-bit keys and 6.4 to 12.8 with 64-bit keys, for any keys,
// plus up to a quarter of that for the directory. Building needs hardly more. If `bits` is less
// than suits the keys, the index takes up to 128 bytes per entry.
//
// Builds on all cores. For `simd` see FastTreeOptions. Errors: Unimplemented for byte-string keys;
// InvalidArgument for more bits than the keys have; FailedPrecondition if kCells is required and
// the keys are too few or too uneven for it. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakePackedIndex(
    SortedRun run, const PackedIndexOptions& options = {});

}  // namespace cairn
