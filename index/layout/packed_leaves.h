#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/layout/wide_key.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// The layout of a leaf of 64 bytes that keeps the low kBits bits of its keys:
//
//   keys       kEntries x kBits   ascending; all ones if there is no entry
//   position   4 bytes            of the leaf's first entry in the run
//   row ids    kEntries x 4       kNoRow if there is no entry
//
// so that a lookup reads only one cache line. Keys of 48 bits are in two parts: the low
// 32 bits of each, then the high 16 of each. Little-endian; the same bytes on CPU and GPU.
template <int kBits>
struct LeafLayout {
  static_assert(kBits == 16 || kBits == 32 || kBits == 48 || kBits == 64 || kBits == 128);
  // The type of a key, or at least of the part of it that is kept.
  using Key = std::conditional_t<kBits == 128, WideKey, uint64_t>;
  // The type of the part of a key that is kept.
  using Low =
      std::conditional_t<kBits == 16, uint16_t, std::conditional_t<kBits == 32, uint32_t, Key>>;

  static constexpr size_t kBytes = 64;
  static constexpr size_t kEntries = (kBytes - 4) / (kBits / 8 + 4);  // 10, 7, 6, 5, 3
  static constexpr size_t kPositionOffset = kEntries * kBits / 8;
  static constexpr size_t kRowsOffset = kPositionOffset + 4;
  // The bits of a key that are kept.
  static constexpr Key kMask = static_cast<Key>(~Key{0}) >> (8 * sizeof(Key) - kBits);
};

// LeafLayout<bits>::kEntries.
constexpr int LeafEntries(int bits) {
  return static_cast<int>((LeafLayout<16>::kBytes - 4) / (static_cast<size_t>(bits) / 8 + 4));
}

struct alignas(64) Leaf {
  unsigned char bytes[64];
};

// A leaf's sixteen 32-bit words while it is being filled, on either processor.
template <int kBits>
struct LeafWords {
  using Layout = LeafLayout<kBits>;
  uint32_t words[16];

  // A leaf without entries before the entry at `position`.
  constexpr explicit LeafWords(Position position) : words{} {
    for (int i = 0; i < static_cast<int>(Layout::kPositionOffset / 4); ++i) words[i] = UINT32_MAX;
    words[Layout::kPositionOffset / 4] = position;
    for (int i = 0; i < static_cast<int>(Layout::kEntries); ++i) SetRow(i, kNoRow);
  }

  constexpr void SetRow(int slot, RowId row_id) { words[Layout::kRowsOffset / 4 + slot] = row_id; }
  // Keeps the low bits of `key`.
  constexpr void SetKey(int slot, typename Layout::Key key) {
    if constexpr (kBits == 16) {
      SetHalf(0, slot, key);
    } else if constexpr (kBits == 32) {
      words[slot] = static_cast<uint32_t>(key);
    } else if constexpr (kBits == 48) {
      words[slot] = static_cast<uint32_t>(key);
      SetHalf(Layout::kEntries, slot, key >> 32);
    } else {
      constexpr int kWords = kBits / 32;
      for (int i = 0; i < kWords; ++i) {
        words[kWords * slot + i] = static_cast<uint32_t>(key >> 32 * i);
      }
    }
  }

 private:
  // Sets the 16-bit number `i` from word `first` on.
  constexpr void SetHalf(int first, int i, uint64_t value) {
    const int shift = 16 * (i % 2);
    uint32_t& word = words[first + i / 2];
    word = (word & ~(uint32_t{0xffff} << shift)) | static_cast<uint32_t>(value & 0xffff) << shift;
  }
};

// The entries of a run of fixed-width keys in packed leaves, in order. The key space is divided
// into one interval per leaf: leaf i answers for the keys in (separator[i - 1], separator[i]], the
// last leaf for all above. Within a block, separators are SeparatorBetween.
//
// A leaf keeps the low bits of its keys, so it may hold only keys with equal high bits (a block).
// Every key that a leaf answers for must have the same high bits, or the leaf must be empty: a
// stretch of blocks without entries has an empty leaf, whose position is that of the next entry. So
// comparing only low bits is exact, for present and absent keys. A key's duplicates may fill
// several leaves; their separators are equal, and the first of these leaves answers.
template <typename Key>
struct LeafCuts {
  int bits = 0;
  size_t leaves = 0;                  // number of leaves, at least one
  std::vector<size_t> leaves_before;  // of each task that fills them, and of all
  AlignedBuffer<Key> separators;      // ascending, one less than leaves
};

// The separator in [last, next) that ends in most ones; `last` if they are equal. It can be
// anywhere between them, so that a key slightly above `last` mostly finds the leaf of `last`, and
// few bits distinguish it from others (suffix truncation; Bayer and Unterauer, Prefix B-trees,
// 1977).
template <typename Key>
constexpr Key SeparatorBetween(Key last, Key next) {
  return last == next ? last : last | (std::bit_floor(static_cast<Key>(last ^ next)) - 1);
}

// The number of leaves that the keys take if a leaf keeps the low `bits` bits of each. `bits` must
// be at least 16, and at most the bits of Key. There are at most two leaves per key. If all bits
// are kept, the number is the minimum.
template <typename Key>
size_t CountPackedLeaves(absl::Span<const Key> keys, int bits, int threads);

// The number of bits, out of 16, 32 and 64 up to the key's, that needs the fewest leaves, estimated
// from a sample of the keys; never more leaves than with all bits.
template <typename Key>
int ChooseLeafBits(absl::Span<const Key> keys, int threads);

// Errors: InvalidArgument if there are more leaves than 32 bits can number.
absl::Status CheckLeafCount(uint64_t leaves, int bits);

// Cuts keys, which must ascend, into leaves, on up to `threads` threads. Errors: as of
// CheckLeafCount. Throws std::bad_alloc.
template <typename Key>
absl::StatusOr<LeafCuts<Key>> CutLeaves(absl::Span<const Key> keys, int bits, int threads);

// Fills the leaves of the tasks [first_task, last_task) of LeafCuts::leaves_before into `leaves`,
// whose first element is leaf leaves_before[first_task]. Without keys there is one leaf and no
// task. Throws std::bad_alloc.
template <typename Key>
void FillLeaves(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                const LeafCuts<Key>& cuts, size_t first_task, size_t last_task, int threads,
                Leaf* leaves);

// Fills all leaves of `keys`. Throws std::bad_alloc.
template <typename Key>
AlignedBuffer<Leaf> FillLeaves(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                               const LeafCuts<Key>& cuts, int threads);

}  // namespace cairn
