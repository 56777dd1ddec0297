#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "index/bit_width.h"
#include "index/unroll.h"

namespace cairn {

// A node of a K-ary search tree in one 32-byte sector: up to kSeparators ascending keys, each kept
// as about ten bits, which tell for most keys how many of the separators are less, and leave a few
// in doubt for the others. Those are compared with the full separators, which stand elsewhere.
//
// The keys that a node answers for, an interval, are mapped to kNumbers numbers by a monotone
// function: a shift, a subtraction and a multiplication. The separators' numbers are kept in
// Elias-Fano code (Elias, JACM 1974): of each its low kLowBits bits, and of its high bits, a cell,
// only the unary code of all, a one for every separator and a zero at the end of every cell. A
// separator is in doubt only for keys of the same number.
//
// So nodes are exact, together with the full separators, for any distribution; the distribution
// decides how often a full separator is read.
template <int kSeparators_, int kLowBits_>
struct alignas(32) KaryNode {
  static constexpr int kSeparators = kSeparators_;
  static constexpr uint32_t kFanOut = kSeparators + 1;
  static constexpr int kLowBits = kLowBits_;
  static constexpr int kWords = 7;  // beside the header: the unary code, then the low bits
  static constexpr int kUnaryBits = kWords * 32 - kSeparators * kLowBits;
  static constexpr int kCells = kUnaryBits - kSeparators;
  static constexpr uint32_t kNumbers = uint32_t{kCells} << kLowBits;
  static_assert(kLowBits >= 1 && kCells >= 1);

  // The number of separators less than a key is at least `low` and at most `high`.
  struct Ranks {
    uint32_t low, high;
  };

  // The node of `count` separators, at most kSeparators, given by separator(0) <= separator(1) <=
  // …, that answers for the keys from `first` to `last`, in which the separators lie.
  template <typename Key, typename Separator>
  static constexpr KaryNode Make(Key first, Key last, int count, Separator separator);

  // Requires that the key be one that the node answers for.
  template <typename Key>
  constexpr Ranks Find(Key key) const;

  // A key's number is (((key >> shift) - base) mod kOffsets) * factor >> scale.
  // Bits 0-5: shift; 6-9: scale; 10-17: factor; 20-31: base.
  uint32_t header;
  uint32_t words[kWords];

 private:
  static constexpr int kOffsetBits = 12;
  static constexpr uint32_t kOffsets = 1u << kOffsetBits;
  static constexpr uint32_t kLowMask = (1u << kLowBits) - 1;

  constexpr uint32_t shift() const { return header & 63; }
  constexpr uint32_t scale() const { return header >> 6 & 15; }
  constexpr uint32_t factor() const { return header >> 10 & 255; }
  constexpr uint32_t base() const { return header >> 20; }
  // Whether keys with equal numbers are equal.
  constexpr bool distinguishes() const { return shift() == 0 && factor() >> scale() != 0; }

  template <typename Key>
  constexpr uint32_t Number(Key key) const {
    const uint32_t offset = (static_cast<uint32_t>(key >> shift()) - base()) & (kOffsets - 1);
    return offset * factor() >> scale();
  }
  // The header that spreads the keys from `first` to `last` over the numbers.
  template <typename Key>
  static constexpr uint32_t MakeHeader(Key first, Key last);

  // Where the unary code has its zero number `index`, counted from 0.
  constexpr uint32_t ZeroAt(uint32_t index) const;
  // The place behind its last zero before place `at`, 0 if there is none.
  constexpr uint32_t BehindZeroBefore(uint32_t at) const;
  constexpr uint32_t LowOf(uint32_t separator) const;
  constexpr void SetBits(uint32_t at, uint32_t bits) {
    words[at / 32] |= bits << at % 32;
    if (at % 32 != 0 && bits >> (32 - at % 32) != 0) words[at / 32 + 1] |= bits >> (32 - at % 32);
  }
  // words[i], written such that a node in registers stays there.
  constexpr uint32_t Word(uint32_t i) const {
    uint32_t word = words[0];
    CAIRN_UNROLL
    for (uint32_t j = 1; j < kWords; ++j) word = i == j ? words[j] : word;
    return word;
  }
};

template <int kSeparators, int kLowBits>
template <typename Key>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::MakeHeader(Key first, Key last) {
  const int bits = BitWidth(last - first);
  uint32_t shift = bits > kOffsetBits ? static_cast<uint32_t>(bits - kOffsetBits) : 0;
  if ((last >> shift) - (first >> shift) >= kOffsets) ++shift;
  const auto greatest = static_cast<uint32_t>((last >> shift) - (first >> shift));
  // The greatest factor / 2^scale, in eight bits, that keeps greatest * factor / 2^scale a number.
  uint32_t scale = 15, factor = 0;
  do {
    --scale;
    factor = ((kNumbers << scale) - 1) / (greatest == 0 ? 1 : greatest);
  } while (factor > 255 && scale > 0);
  if (factor > 255) factor = 255;
  return shift | scale << 6 | factor << 10 | (static_cast<uint32_t>(first >> shift) << 20);
}

template <int kSeparators, int kLowBits>
template <typename Key, typename Separator>
constexpr KaryNode<kSeparators, kLowBits> KaryNode<kSeparators, kLowBits>::Make(
    Key first, Key last, int count, Separator separator) {
  KaryNode node = {};
  node.header = MakeHeader(first, last);
  for (int i = 0; i < count; ++i) {
    const uint32_t number = node.Number(separator(i));
    node.SetBits((number >> kLowBits) + static_cast<uint32_t>(i), 1);
    node.SetBits(static_cast<uint32_t>(kUnaryBits + i * kLowBits), number & kLowMask);
  }
  return node;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::ZeroAt(uint32_t index) const {
  // The word, then the bit by halving.
  uint32_t zeros = ~words[0], at = 0, up_to = 0, before = 0;
  CAIRN_UNROLL
  for (uint32_t i = 1; i * 32 < kUnaryBits; ++i) {
    up_to += static_cast<uint32_t>(std::popcount(~words[i - 1]));
    const bool behind = index >= up_to;
    zeros = behind ? ~words[i] : zeros;
    at = behind ? i * 32 : at;
    before = behind ? up_to : before;
  }
  index -= before;
  CAIRN_UNROLL
  for (uint32_t half = 16; half > 0; half /= 2) {
    const auto lower = static_cast<uint32_t>(std::popcount(zeros & ((1u << half) - 1)));
    const bool behind = index >= lower;
    index -= behind ? lower : 0;
    zeros >>= behind ? half : 0;
    at += behind ? half : 0;
  }
  return at;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::BehindZeroBefore(uint32_t at) const {
  uint32_t behind = 0;
  CAIRN_UNROLL
  for (uint32_t i = 0; i * 32 < kUnaryBits; ++i) {
    const uint32_t before = at >= (i + 1) * 32 ? ~0u : at <= i * 32 ? 0 : (1u << at % 32) - 1;
    const uint32_t zeros = ~words[i] & before;
    behind = zeros == 0 ? behind : i * 32 + static_cast<uint32_t>(std::bit_width(zeros));
  }
  return behind;
}

template <int kSeparators, int kLowBits>
constexpr uint32_t KaryNode<kSeparators, kLowBits>::LowOf(uint32_t separator) const {
  const uint32_t bit = kUnaryBits + separator * kLowBits;
  if constexpr (32 % kLowBits == 0 && kUnaryBits % kLowBits == 0) {
    return Word(bit / 32) >> bit % 32 & kLowMask;
  }
  const uint64_t both = uint64_t{Word(bit / 32 + 1)} << 32 | Word(bit / 32);
  return static_cast<uint32_t>(both >> bit % 32) & kLowMask;
}

template <int kSeparators, int kLowBits>
template <typename Key>
constexpr typename KaryNode<kSeparators, kLowBits>::Ranks KaryNode<kSeparators, kLowBits>::Find(
    Key key) const {
  const uint32_t number = Number(key), cell = number >> kLowBits, low = number & kLowMask;
  // The ones of the cell are those between its zero and the one before; as many zeros as there are
  // cells before are before them.
  const uint32_t zero = ZeroAt(cell), end = zero - cell;
  uint32_t begin = BehindZeroBefore(zero) - cell;
  while (begin < end && LowOf(begin) < low) ++begin;
  uint32_t doubtful = begin;
  while (doubtful < end && LowOf(doubtful) == low) ++doubtful;
  return {begin, distinguishes() ? begin : doubtful};
}

}  // namespace cairn
