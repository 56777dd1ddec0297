#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/types.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/rank_bitmap.h"
#include "index/layout/packed_leaves.h"

namespace cairn::gpu {

// Packed leaves as a kernel sees them.
struct PackedView {
  int bits = 0;           // of a key in a leaf
  bool links = false;     // whether some leaves are continued
  Position distinct = 0;  // keys in all leaves
  const Leaf* leaves = nullptr;
  const Position* first_entry = nullptr;  // DistinctKeys::first_entry, or null
};

enum class PackedAnswer : uint8_t {
  kPosition,  // Position: the lower bound
  kRange,     // Position: the lower bound, and to `ends` the upper one
  kRow,       // RowId: the first one, or kNoRow
  kFound,     // bool
};

// Queries and where their results go, in device memory.
template <typename Key>
struct PackedBatch {
  const Key* keys;
  size_t size;
  Key add;  // to each key: 1 makes a lower bound an upper one
  void* results;
  Position* ends = nullptr;       // of kRange
  unsigned* next_step = nullptr;  // set by the launch
};

// Enqueues the search of a batch that is not empty, in leaves that are not, under each directory.
template <typename Key>
absl::Status SearchUnderBitmap(const PackedView& view, const RankBitmapView<Key>& directory,
                               PackedAnswer answer, const PackedBatch<Key>& batch,
                               cudaStream_t stream);
template <typename Key>
absl::Status SearchUnderTree(const PackedView& view, const KaryDirectory<Key>& directory,
                             PackedAnswer answer, const PackedBatch<Key>& batch,
                             cudaStream_t stream);

}  // namespace cairn::gpu
