#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/aligned_buffer.h"

namespace cairn {

// How a leaf of 64 bytes is laid out whose keys are kept as their low kBits bits:
//
//   keys       kEntries x kBits   ascending; all ones where there is no entry
//   position   4 bytes            of the leaf's first entry in the run
//   row ids    kEntries x 4       kNoRow where there is no entry
//
// so that one cache line holds all that a lookup reads. Little-endian; the same bytes on CPU and
// GPU.
template <int kBits>
struct LeafLayout {
  static_assert(kBits == 16 || kBits == 32 || kBits == 64);
  // What is kept of a key.
  using Low = std::conditional_t<kBits == 16, uint16_t,
                                 std::conditional_t<kBits == 32, uint32_t, uint64_t>>;

  static constexpr size_t kBytes = 64;
  static constexpr size_t kEntries = (kBytes - 4) / (kBits / 8 + 4);  // 10, 7, 5
  static constexpr size_t kPositionOffset = kEntries * kBits / 8;
  static constexpr size_t kRowsOffset = kPositionOffset + 4;
};

struct alignas(64) Leaf {
  unsigned char bytes[64];
};

// The entries of a run of fixed-width keys in packed leaves, in order, with the key space cut into
// one interval a leaf: leaf i answers for the keys in (separator[i - 1], separator[i]], the last
// one for all above.
//
// A leaf keeps the low bits of its keys, so it may hold only keys that agree in the high bits (a
// block), and every key that a leaf answers for must either do so too, or find the leaf empty: a
// stretch of blocks without entries gets an empty leaf, whose position is that of what follows. So
// comparing low bits alone is exact, for keys that are there and for all others. A key's duplicates
// may fill several leaves; their separators are equal, and the first of them is the one that
// answers.
template <typename Key>
struct PackedLeaves {
  int bits = 0;                   // kBits of LeafLayout
  AlignedBuffer<Leaf> leaves;     // at least one
  AlignedBuffer<Key> separators;  // ascending, one less than leaves
};

// The number of leaves that keys kept in `bits` bits take; requires 16 <= bits <= the key's.
template <typename Key>
size_t CountPackedLeaves(absl::Span<const Key> keys, int bits, int threads);

// The number of bits, out of 16, 32 and 64 up to the key's, that takes the fewest leaves, as far as
// a sample of the keys tells.
template <typename Key>
int ChooseLeafBits(absl::Span<const Key> keys, int threads);

// Packs entries, which must be in run order and as many keys as row ids, on up to `threads`
// threads. Throws std::bad_alloc.
template <typename Key>
PackedLeaves<Key> PackLeaves(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, int bits,
                             int threads);

}  // namespace cairn
