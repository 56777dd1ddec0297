#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/sorted_run.h"
#include "gpu/packed/packed_index.h"
#include "gpu/run/key_survey.h"
#include "gpu/text/text_code.h"

// Predicts how much memory packed leaves take, before they are built.

namespace cairn::gpu {

// Keys suit a bitmap, and repeated keys suit leaves of entries, under three conditions: the bitmap
// has few nodes, few keys are in linked leaves, and no chain is long. Even a small bitmap may take
// 1 MB.
constexpr size_t MostBitmapNodes(size_t keys) {
  return (size_t{1} << 16) + keys / 32;
}
constexpr size_t MostChainedKeys(size_t keys) {
  return keys / 10 + 16;
}
inline constexpr size_t kLongestChain = 16;

// Whether leaves hold all entries of a run, so that no row-id column is needed. This requires that
// at most an eighth of the entries repeat a key, and never many the same key. Under a tree, chains
// are then short and contain few entries. Under a bitmap this need not hold; without other
// requirements, leaves then hold distinct keys.
template <typename Key>
bool MayHoldEntries(size_t entries, const KeySurvey<Key>& survey) {
  return survey.distinct < entries && entries - survey.distinct <= entries / 8 &&
         !survey.has_long_run;
}

// Maximum number of leaves of an index: leaf numbers have 32 bits, and the number after the last
// leaf of a chain is not that of a leaf.
inline constexpr uint64_t kMaxLeaves = UINT32_MAX;

// InvalidArgument, with both numbers, if there are more than kMaxLeaves leaves. Leaves of fewer
// bits than the keys are only suitable for dense keys; others may need two leaves per group of
// keys.
absl::Status CheckLeafCount(uint64_t leaves, int bits);

// Bounds of device memory in bytes. During the build, they include the run from which leaves are
// built.
struct PackedBounds {
  uint64_t min_building = 0;  // at the peak: with less the build fails
  uint64_t max_building = 0;  // at the peak: with this much the build succeeds
  uint64_t max_resident = 0;  // after the build: DeviceIndex::memory_bytes
  uint64_t min_leaves = 0;    // however the leaves are cut
};

// For a run of `entries` >= 1 entries. The survey does not show how keys fall into a bitmap's
// cells, so the maximum assumes cells that leave every other leaf nearly empty. For distinct keys,
// the maximum is up to 1.75 times the memory that the build takes, and up to 2.5 times the memory
// after it; under a tree, 1.2 times.
template <typename Key>
PackedBounds BoundPackedBytes(size_t entries, const KeySurvey<Key>& survey,
                              const PackedIndexOptions& options);

// The same for a run of byte strings and their code; includes the code's table. Reads all keys, on
// up to `threads` threads. Throws std::bad_alloc.
PackedBounds BoundPackedText(const SortedRun& run, const TextCode& code,
                             const PackedIndexOptions& options, int threads);

}  // namespace cairn::gpu
