#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/layout/bit_width.h"
#include "gpu/layout/unroll.h"

namespace cairn {

// A node of a K-ary search tree in one 32-byte sector: up to kSeparators ascending keys, each
// stored as about ten bits. For most keys, these determine how many separators are less. For the
// others, a few separators remain in doubt, and are compared with the full separators, which are
// stored elsewhere.
//
// The keys of a node, an interval, are mapped to kNumbers numbers by a monotonic function: a shift,
// a subtraction and a multiplication. The high bits of a number are a cell. A bitmap has one bit
// per cell, set if the cell has a separator. In addition, the kLowBits low bits of each separator's
// number are stored. The rank of a key is the rank of its cell, a number of set bits. If the cell
// has a separator, the low bits decide; if they are also equal, the separator is in doubt.
//
// Separators that share a cell are moved to the next free cells, and at the end back into the
// bitmap, as in a quotient filter (Bender et al., VLDB 2012). A node with a moved separator is
// irregular: for a key in a run of several set bits, the whole run is in doubt. For a key in a cell
// whose bit is not set, the rank is still exact.
//
// So together with the full separators, nodes are exact for any distribution. The distribution
// determines how often full separators are read.
template <int kSeparators_, int kLowBits_>
struct alignas(32) KaryNode {
  static constexpr int kSeparators = kSeparators_;
  static constexpr uint32_t kFanOut = kSeparators + 1;
  static constexpr int kLowBits = kLowBits_;
  static constexpr int kWords = 7;  // in addition to the header: the bitmap, then the low bits
  static constexpr uint32_t kCells = kWords * 32 - kSeparators * kLowBits;
  static constexpr uint32_t kNumbers = kCells << kLowBits;
  static_assert(kLowBits >= 1 && kCells >= kSeparators);

  // The number of separators less than a key is at least `low` and at most `high`.
  struct Ranks {
    uint32_t low, high;
  };

  // The node of `count` separators, at most kSeparators, given by separator(0) <= separator(1) <=
  // …, for the keys from `first` to `last`. The separators must be in this interval.
  template <typename Key, typename Separator>
  static constexpr KaryNode Make(Key first, Key last, uint32_t count, Separator separator);

  // Requires that the key is in the node's interval.
  template <typename Key>
  constexpr Ranks Find(Key key) const;

  // A key's number is (((key >> shift) - base) mod kOffsets) * factor >> scale.
  // Bits 0-5: shift; 6-9: scale; 10-17: factor; 18: irregular; 19: bit 6 of the shift; 20-31: base.
  uint32_t header;
  uint32_t words[kWords];

 private:
  static constexpr int kOffsetBits = 12;
  static constexpr uint32_t kOffsets = 1u << kOffsetBits;
  static constexpr uint32_t kIrregular = 1u << 18;
  static constexpr uint32_t kLowMask = (1u << kLowBits) - 1;
  static constexpr uint32_t kBitmapWords = (kCells + 31) / 32;

  // For keys of up to 64 bits, the shift is less than 64.
  template <typename Key>
  constexpr uint32_t shift() const {
    return sizeof(Key) > 8 ? (header & 63) | (header >> 13 & 64) : header & 63;
  }
  constexpr uint32_t scale() const { return header >> 6 & 15; }
  constexpr uint32_t factor() const { return header >> 10 & 255; }
  constexpr uint32_t base() const { return header >> 20; }
  // Whether keys with equal numbers are equal.
  template <typename Key>
  constexpr bool distinguishes() const {
    return shift<Key>() == 0 && factor() >> scale() != 0;
  }

  template <typename Key>
  constexpr uint32_t Number(Key key) const {
    const uint32_t offset = (static_cast<uint32_t>(key >> shift<Key>()) - base()) & (kOffsets - 1);
    return offset * factor() >> scale();
  }
  // The header that distributes the keys from `first` to `last` over the numbers.
  template <typename Key>
  static constexpr uint32_t MakeHeader(Key first, Key last);

  // The bits of word `i` of the bitmap that belong to cells before `cell`.
  static constexpr uint32_t Before(uint32_t cell, uint32_t i) {
    const int bits = static_cast<int>(cell) - static_cast<int>(i * 32);
#ifdef __CUDA_ARCH__
    uint32_t mask = 0;
    asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(mask) : "r"(bits > 0 ? bits : 0));
    return mask;
#else
    return bits >= 32 ? ~0u : bits > 0 ? (1u << bits) - 1 : 0;
#endif
  }
  constexpr uint32_t CountBefore(uint32_t cell) const;
  // BeginOfRun: the cell after the last cell before `cell` whose bit is not set, or 0 if there is
  // none. EndOfRun: the first cell from `cell` on whose bit is not set, or kCells.
  constexpr uint32_t BeginOfRun(uint32_t cell) const;
  constexpr uint32_t EndOfRun(uint32_t cell) const;

  constexpr void SetBits(uint32_t at, uint32_t bits) {
    words[at / 32] |= bits << at % 32;
    if (at % 32 != 0 && bits >> (32 - at % 32) != 0) words[at / 32 + 1] |= bits >> (32 - at % 32);
  }
  constexpr uint32_t LowOf(uint32_t separator) const;
  // words[i] for kFrom <= i < kEnd, written such that a node in registers stays there.
  template <uint32_t kFrom, uint32_t kEnd>
  constexpr uint32_t Word(uint32_t i) const {
    uint32_t word = words[kFrom];
    CAIRN_UNROLL
    for (uint32_t j = kFrom + 1; j < kEnd; ++j) word = i == j ? words[j] : word;
    return word;
  }
};

template <int kSeparators, int kLowBits>
template <typename Key>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::MakeHeader(Key first, Key last) {
  int bits = BitWidth(static_cast<uint64_t>(last - first));
  if constexpr (sizeof(Key) > 8) {
    const auto high = static_cast<uint64_t>((last - first) >> 64);
    if (high != 0) bits = 64 + BitWidth(high);
  }
  uint32_t shift = bits > kOffsetBits ? static_cast<uint32_t>(bits - kOffsetBits) : 0;
  if ((last >> shift) - (first >> shift) >= kOffsets) ++shift;
  const auto greatest = static_cast<uint32_t>((last >> shift) - (first >> shift));
  // The greatest factor / 2^scale, with an eight-bit factor, that maps the greatest offset to a
  // valid number.
  uint32_t scale = 15, factor = 0;
  do {
    --scale;
    factor = ((kNumbers << scale) - 1) / (greatest == 0 ? 1 : greatest);
  } while (factor > 255 && scale > 0);
  if (factor > 255) factor = 255;
  return (shift & 63) | scale << 6 | factor << 10 | (shift & 64) << 13 |
         (static_cast<uint32_t>(first >> shift) << 20);
}

template <int kSeparators, int kLowBits>
template <typename Key, typename Separator>
constexpr KaryNode<kSeparators, kLowBits> KaryNode<kSeparators, kLowBits>::Make(
    Key first, Key last, uint32_t count, Separator separator) {
  KaryNode node = {};
  node.header = MakeHeader(first, last);
  uint32_t free = 0;  // first cell available for the remaining separators
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = node.Number(separator(i)), cell = number >> kLowBits;
    const uint32_t last_cell = kCells - count + i;
    uint32_t place = cell > free ? cell : free;
    if (place > last_cell) place = last_cell;
    if (place != cell) node.header |= kIrregular;
    free = place + 1;
    node.SetBits(place, 1);
    node.SetBits(kCells + i * kLowBits, number & kLowMask);
  }
  return node;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::CountBefore(uint32_t cell) const {
  int count = 0;
  CAIRN_UNROLL
  for (uint32_t i = 0; i < kBitmapWords; ++i) count += std::popcount(words[i] & Before(cell, i));
  return static_cast<uint32_t>(count);
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::BeginOfRun(uint32_t cell) const {
  uint32_t begin = 0;
  CAIRN_UNROLL
  for (uint32_t i = 0; i < kBitmapWords; ++i) {
    const uint32_t zeros = ~words[i] & Before(cell, i);
    if (zeros != 0) begin = i * 32 + static_cast<uint32_t>(std::bit_width(zeros));
  }
  return begin;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::EndOfRun(uint32_t cell) const {
  uint32_t end = kCells;
  CAIRN_UNROLL
  for (uint32_t i = kBitmapWords; i-- > 0;) {
    const uint32_t zeros = ~words[i] & ~Before(cell, i);
    // std::countr_zero(zeros), which nvcc 13 compiles to return 0 on the device.
    if (zeros != 0) end = i * 32 + static_cast<uint32_t>(std::popcount(~zeros & (zeros - 1)));
  }
  return end < kCells ? end : kCells;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::LowOf(uint32_t separator) const {
  constexpr uint32_t kFrom = kCells / 32;
#ifdef __CUDA_ARCH__
  if constexpr (kLowBits == 4 && kFrom + 4 == kWords && kCells % 32 == 0) {
    const uint32_t byte = separator / 2 & 7;
    const uint32_t bytes = separator < 16 ? __byte_perm(words[kFrom], words[kFrom + 1], byte)
                                          : __byte_perm(words[kFrom + 2], words[kFrom + 3], byte);
    return bytes >> separator % 2 * 4 & kLowMask;
  }
#endif
  const uint32_t bit = kCells + separator * kLowBits;
  const uint32_t word = Word<kFrom, kWords>(bit / 32);
  if constexpr (32 % kLowBits == 0 && kCells % kLowBits == 0) {
    return word >> bit % 32 & kLowMask;
  } else {
    const uint64_t both = uint64_t{Word<kFrom, kWords>(bit / 32 + 1)} << 32 | word;
    return static_cast<uint32_t>(both >> bit % 32) & kLowMask;
  }
}

template <int kSeparators, int kLowBits>
template <typename Key>
constexpr typename KaryNode<kSeparators, kLowBits>::Ranks KaryNode<kSeparators, kLowBits>::Find(
    Key key) const {
  const uint32_t number = Number(key), cell = number >> kLowBits, low = number & kLowMask;
  const uint32_t before = CountBefore(cell);
  const uint32_t set = Word<0, kBitmapWords>(cell / 32) >> cell % 32 & 1;
  const uint32_t separator = LowOf(before);
  const uint32_t above = set & (low > separator ? 1 : 0);
  const uint32_t equal = set & (low == separator && !distinguishes<Key>() ? 1 : 0);
  Ranks ranks = {before + above, before + above + equal};
  if ((header & kIrregular) != 0 && set != 0) {
    const uint32_t begin = BeginOfRun(cell), end = EndOfRun(cell);
    if (end - begin > 1) ranks = {before - (cell - begin), before + (end - cell)};
  }
  return ranks;
}

}  // namespace cairn
