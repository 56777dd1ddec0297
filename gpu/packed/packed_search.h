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

// Packed leaves as a kernel sees them.
struct PackedView {
  int bits = 0;          // of a key in a leaf
  bool links = false;    // whether some leaves are continued
  bool repeats = false;  // whether some keys are in leaves several times, one entry after the other
  Position distinct = 0;  // keys in all leaves, those that are there several times as often
  const Leaf* leaves = nullptr;
  const Position* first_entry = nullptr;  // DistinctKeys::first_entry, or null
};

enum class PackedAnswer : uint8_t {
  kPosition,  // Position: the lower bound
  kRange,     // Position: the lower bound, and to `ends` the upper one
  kRow,       // RowId: the first one, or kNoRow
  kFound,     // bool
};

// Queries in device memory that are keys themselves.
template <typename Number>
struct NumberQueries {
  using Key = Number;
  const Key* keys;
  Key add;  // to each key: 1 makes a lower bound an upper one
};

// Byte strings in device memory that a code (text_code.h) makes keys of.
template <typename Number>
struct TextQueries {
  using Key = Number;
  const char* bytes;
  const uint32_t* offsets;
  // Of the code, in device memory.
  const TextPosition* positions;
  const uint32_t* shares;
  uint32_t count;        // of positions
  uint32_t share_words;  // of 32 bits; 0 where there are no shares
  uint32_t shortest;
  bool plain;
  TextEdge edge;
};

// Queries and where their results go, in device memory.
template <typename Queries>
struct PackedBatch {
  Queries queries;
  size_t size;
  void* results;
  Position* ends = nullptr;  // of kRange
  // Set by the launch:
  unsigned* next_step = nullptr;  // the next one that no warp has taken
  unsigned* is_done = nullptr;    // whether the batch has been answered
};

// Enqueues the search of a batch that is not empty, in leaves that are not, under each directory.
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
