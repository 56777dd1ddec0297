#pragma once

#include <bit>
#include <cstdint>

#include "gpu/layout/unroll.h"

namespace cairn {

// Maps byte strings to integers in the same order. The symbols of a position are the bytes that
// some key has there, and the end of a key, which is the lowest. They are numbered in order. A key
// is the integer whose mixed-radix digits are the numbers of its symbols. For example, sixteen
// decimal digits take 54 bits, and a UUID as text takes 128. This is exact for the keys from which
// the symbols were collected: they have distinct numbers. It is also exact for all other strings,
// which are located between two consecutive numbers.

// The symbols of one position.
struct TextPosition {
  // For 32 consecutive bytes: one bit per byte, set if it is a symbol, and the number of symbols
  // before.
  struct Bytes {
    uint32_t bits;
    uint32_t before;
  };
  Bytes bytes[8];
  uint32_t radix;  // number of symbols, 1 to 257
  // Positions are combined into groups while the product of their radices is less than 2^32. For
  // the last position of a group, this is the product, otherwise 0.
  uint32_t group;

  // Whether the end of a key is a symbol.
  constexpr bool HasEnd() const { return bytes[0].before != 0; }
};

// Which number of keys is requested for a string.
enum class TextEdge : uint8_t {
  kLower,      // keys less than the string: those with a lower number
  kUpper,      // keys that are not greater
  kPrefixEnd,  // keys that are less or start with the string
};

template <typename Key>
struct TextNumber {
  Key number;
  bool exact;  // whether the string has a number, and `number` is that number
  // Whether it is after all numbers, and Key has no number for that; `number` is 0 then.
  bool past_all;
};

// The number of a string of `length` bytes among keys of up to `count` positions. word_at(i)
// returns its bytes 4 i … 4 i + 3 in a word, lowest byte first; bytes past its end may be anything.
// It is called only for words with a byte of the string. Key can hold the product of all radices,
// minus one.
template <typename Key, typename WordAt>
constexpr TextNumber<Key> NumberOfText(const TextPosition* positions, uint32_t count,
                                       uint32_t length, TextEdge edge, WordAt word_at) {
  Key number = 0;
  uint32_t group = 0;
  bool same = true;    // whether everything so far is a symbol
  bool moved = false;  // whether anything was added
  for (uint32_t first = 0; first < count; first += 4) {
    uint32_t word = first < length ? word_at(first / 4) : 0;
    CAIRN_UNROLL
    for (uint32_t j = 0; j < 4; ++j, word >>= 8) {
      const uint32_t p = first + j;
      if (p >= count) break;
      const TextPosition& at = positions[p];
      const uint32_t byte = word & 0xff;
      const TextPosition::Bytes symbols = at.bytes[byte / 32];
      const uint32_t bits = symbols.bits >> byte % 32;
      const uint32_t rank =
          symbols.before +
          static_cast<uint32_t>(std::popcount(symbols.bits & ((uint32_t{1} << byte % 32) - 1)));
      uint32_t digit = 0;
      if (p < length) {
        digit = same ? rank : 0;
        same = same && (bits & 1) != 0;
      } else if (edge == TextEdge::kPrefixEnd) {
        group += same ? 1 : 0;
        moved |= same;
        same = false;
      } else {
        same = same && at.HasEnd();
      }
      moved |= digit != 0;
      group = group * at.radix + digit;
      if (at.group != 0) {
        number = number * at.group + group;
        group = 0;
      }
    }
  }
  const bool exact = same && length <= count;
  const bool behind = same && (length > count || edge != TextEdge::kLower);
  number += behind ? 1 : 0;
  moved |= behind;
  return {number, exact, moved && number == 0};
}

// The share of a byte that is not a symbol.
inline constexpr uint32_t kNoSymbol = UINT32_MAX;

// A fast way to compute the number of a string that has one; returns false if some byte is not a
// symbol. shares[256 p + byte] is the contribution of a byte at position p to the number of its
// word of four positions. products[w] is the product of word w's radices, at most 2^32. `length`
// must be a key's length, or between those of two keys.
template <typename Key, typename WordAt>
constexpr bool QuickNumberOfText(const uint64_t* products, const uint32_t* shares, uint32_t count,
                                 uint32_t length, WordAt word_at, Key* number) {
  Key sum = 0;
  uint32_t greatest = 0;
  for (uint32_t first = 0; first < count; first += 4) {
    uint32_t word = first < length ? word_at(first / 4) : 0;
    uint32_t of_word = 0;
    CAIRN_UNROLL
    for (uint32_t j = 0; j < 4; ++j, word >>= 8) {
      if (first + j >= length) continue;
      const uint32_t share = shares[256 * (first + j) + (word & 0xff)];
      greatest = greatest < share ? share : greatest;
      of_word += share;
    }
    sum = sum * products[first / 4] + of_word;
  }
  *number = sum;
  return greatest != kNoSymbol;
}

// NumberOfText for keys that all have `count` bytes and may have any byte at any position. The
// number of such a key is its bytes as a big-endian integer.
template <typename Key, typename WordAt>
constexpr TextNumber<Key> NumberOfBytes(uint32_t count, uint32_t length, TextEdge edge,
                                        WordAt word_at) {
  Key number = 0;
  for (uint32_t first = 0; first < count; first += 4) {
    const uint32_t word = first < length ? word_at(first / 4) : 0;
    uint32_t bytes = word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
    if (first < length && length - first < 4) bytes &= ~(~uint32_t{0} >> 8 * (length - first));
    const uint32_t taken = count - first < 4 ? count - first : 4;
    number = static_cast<Key>(number << 8 * taken) | (bytes >> 8 * (4 - taken));
  }
  const bool is_prefix = edge == TextEdge::kPrefixEnd && length < count;
  const bool behind = length > count || (length == count && edge != TextEdge::kLower);
  const uint32_t bits_behind = is_prefix ? 8 * (count - length) : 0;
  if (bits_behind == 8 * sizeof(Key)) {
    number = 0;  // all keys start with the empty prefix
  } else {
    number += is_prefix || behind ? Key{1} << bits_behind : Key{0};
  }
  return {number, length == count, (is_prefix || behind) && number == 0};
}

}  // namespace cairn
