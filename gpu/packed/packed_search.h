#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/types.h"
#include "gpu/layout/text_number.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/rank_bitmap.h"
#include "index/layout/packed_leaves.h"

namespace cairn::gpu {

// Packed leaves as kernels use them.
struct PackedView {
  int bits = 0;           // of a key in a leaf
  bool links = false;     // whether some leaves are continued
  bool repeats = false;   // whether some keys are in leaves several times, once per entry
  Position distinct = 0;  // number of keys in all leaves, including repeated ones
  const Leaf* leaves = nullptr;
  const Position* first_entry = nullptr;  // DistinctKeys::first_entry, or null
};

enum class PackedAnswer : uint8_t {
  kPosition,  // Position: the lower bound
  kRange,     // Position: the lower bound, and in `ends` the upper bound
  kRow,       // RowId: the first row id, or kNoRow
  kFound,     // bool
};

// Queries in device memory that are integer keys.
template <typename Number>
struct NumberQueries {
  using Key = Number;
  const Key* keys;
  Key add;  // added to each key; 1 turns a lower bound into an upper bound
};

// Byte strings in device memory that a code (text_code.h) encodes as keys.
template <typename Number>
struct TextQueries {
  using Key = Number;
  const char* bytes;
  const uint32_t* offsets;
  // The tables of the code, in device memory.
  const TextPosition* positions;
  const uint32_t* shares;
  uint32_t count;        // number of positions
  uint32_t share_words;  // in 32-bit words; 0 if there are no shares
  uint32_t shortest;
  bool plain;
  TextEdge edge;
};

// Queries and the destination of their results, in device memory.
template <typename Queries>
struct PackedBatch {
  Queries queries;
  size_t size;
  void* results;
  Position* ends = nullptr;  // for kRange
  // Set by the launch:
  unsigned* next_step = nullptr;  // the next step that no warp has taken
  unsigned* is_done = nullptr;    // whether the batch is done
};

// Enqueues the search of a non-empty batch in non-empty leaves, one function per directory.
template <typename Queries>
absl::Status SearchUnderBitmap(const PackedView& view,
                               const RankBitmapView<typename Queries::Key>& directory,
                               PackedAnswer answer, const PackedBatch<Queries>& batch,
                               cudaStream_t stream);
template <typename Queries>
absl::Status SearchUnderTree(const PackedView& view,
                             const KaryDirectory<typename Queries::Key>& directory,
                             PackedAnswer answer, const PackedBatch<Queries>& batch,
                             cudaStream_t stream);

}  // namespace cairn::gpu
