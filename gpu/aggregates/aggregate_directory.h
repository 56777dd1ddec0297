#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "gpu/layout/aggregate_leaf.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/rank_bitmap.h"
#include "gpu/run/key_survey.h"

namespace cairn::gpu {

// The beginnings of leaves of one kind, and the directory that finds a key's leaf: a rank bitmap if
// it suits the keys, so that few leaves are continued and chains are short; otherwise a K-ary tree,
// under which no leaf is continued.
template <typename Key>
struct AggregateDirectory {
  int bits = 0;  // of a key in a leaf
  int capacity = 0;
  LeafCut cut;
  std::optional<RankBitmap<Key>> bitmap;   // either this
  std::optional<KaryDirectory<Key>> tree;  // or this

  size_t memory_bytes() const {
    return (bitmap.has_value() ? bitmap->memory_bytes() : 0) +
           (tree.has_value() ? tree->memory_bytes() : 0);
  }
};

// The number of key bits to keep in leaves of a kind, so that `size` distinct keys take the fewest
// leaves.
template <typename Key>
int AggregateLeafBits(AggregateKind kind, size_t size, const KeySurvey<Key>& survey);

// For at least one key, ascending and distinct. Waits. Errors: those of CutLeaves.
template <typename Key>
absl::StatusOr<AggregateDirectory<Key>> MakeAggregateDirectory(const Key* keys, size_t size,
                                                               const KeySurvey<Key>& survey,
                                                               int bits, int capacity,
                                                               cudaStream_t stream);

}  // namespace cairn::gpu
