#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/sorted_run.h"
#include "gpu/packed/packed_index.h"
#include "gpu/run/key_survey.h"
#include "gpu/text/text_code.h"

// How much memory packed leaves take, before they are built.

namespace cairn::gpu {

// A bitmap suits keys, and leaves of entries suit keys of which some repeat, if its nodes are few,
// few keys are in leaves that are linked to, and no leaf is far behind the one that it finds. Even
// a small one may take 1 MB.
constexpr size_t MostBitmapNodes(size_t keys) {
  return (size_t{1} << 16) + keys / 32;
}
constexpr size_t MostChainedKeys(size_t keys) {
  return keys / 10 + 16;
}
inline constexpr size_t kLongestChain = 16;

// Whether so few keys repeat, an eighth of the entries at most, and so seldom, that leaves hold all
// entries of a run, and no column of row ids is needed: chains under a tree are short, and few
// entries are in them. Under a bitmap they may not be; where nothing else is asked for, leaves then
// hold distinct keys.
template <typename Key>
bool MayHoldEntries(size_t entries, const KeySurvey<Key>& survey) {
  return survey.distinct < entries && entries - survey.distinct <= entries / 8 &&
         !survey.has_long_run;
}

// The most leaves of an index: they are numbered by 32 bits, and a chain's last number is none.
inline constexpr uint64_t kMaxLeaves = UINT32_MAX;

// InvalidArgument, with both numbers, beyond kMaxLeaves: leaves of fewer bits than the keys are
// for keys that are dense, and each stretch of others takes two.
absl::Status CheckLeafCount(uint64_t leaves, int bits);

// Bounds of device memory, in bytes, the run that the leaves are built from included while they
// are.
struct PackedBounds {
  uint64_t min_building = 0;  // at the peak: with less the build fails
  uint64_t max_building = 0;  // with so much it does not
  uint64_t max_resident = 0;  // then: DeviceIndex::memory_bytes
  uint64_t min_leaves = 0;    // however they are cut
};

// For a run of `entries` entries, at least one. What is not known of keys is how they fall into a
// bitmap's cells: `most` is for cells that leave every other leaf nearly empty. Of keys that are
// distinct, that is up to 1.75 times what the build takes, and up to 2.5 times what stays; under a
// tree 1.2 times.
template <typename Key>
PackedBounds BoundPackedBytes(size_t entries, const KeySurvey<Key>& survey,
                              const PackedIndexOptions& options);

// The same for a run of byte strings in a code of theirs, whose table is counted too. Reads all
// keys, on up to `threads` threads. Throws std::bad_alloc.
PackedBounds BoundPackedText(const SortedRun& run, const TextCode& code,
                             const PackedIndexOptions& options, int threads);

}  // namespace cairn::gpu
