#pragma once

#include <bit>
#include <cstdint>

#include "gpu/layout/unroll.h"

namespace cairn {

// Byte strings as numbers in their order: at each position the symbols that some key has there, the
// bytes and, least of all, the end of the key, are counted through, and a key is the number whose
// digits, in mixed radix, are its symbols' places. So sixteen decimal digits take 54 bits, a UUID
// as text 128. Exact for the keys that the symbols are of, which have numbers of their own, and for
// whatever else is asked: that lies before a number, and behind the one before it.

// The symbols of one position.
struct TextPosition {
  // Of 32 bytes that follow each other: a bit for each that is a symbol, and the symbols before.
  struct Bytes {
    uint32_t bits;
    uint32_t before;
  };
  Bytes bytes[8];
  uint32_t radix;  // how many symbols, 1 to 257
  // Positions are taken together while their radices' product is less than 2^32; here that product,
  // of the last position of such a group, else 0.
  uint32_t group;

  // Whether the end of a key is one.
  constexpr bool HasEnd() const { return bytes[0].before != 0; }
};

// What of a string is asked for.
enum class TextEdge : uint8_t {
  kLower,      // how many keys are less: those with a number less than its own
  kUpper,      // not greater,
  kPrefixEnd,  // neither greater nor start with it
};

template <typename Key>
struct TextNumber {
  Key number;
  bool exact;  // whether the string has a number, and this is its own
  bool
      past_all;  // whether it is behind all numbers, as one more than Key's greatest; `number` is 0
};

// The number of a string of `length` bytes among keys of up to `count` positions; word_at(i) are
// its bytes 4 i … 4 i + 3 in a word, least first, whatever stands behind its end; it is called for
// words with a byte of the string. Key holds the product of all radices, less one.
template <typename Key, typename WordAt>
constexpr TextNumber<Key> NumberOfText(const TextPosition* positions, uint32_t count,
                                       uint32_t length, TextEdge edge, WordAt word_at) {
  Key number = 0;
  uint32_t group = 0;
  bool same = true;    // whether all symbols so far are ones
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

// The share of a byte that is no symbol.
inline constexpr uint32_t kNoSymbol = UINT32_MAX;

// The number of a string that has one, quickly; false where some byte is no symbol. shares[256 p +
// byte] is what a byte at position p adds to the number of its word of four positions, products[w]
// the radices' product of word w, at most 2^32. `length` is that of some key, or between two.
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

// The same where each byte is a symbol of each position, and the end of a key of none: keys are of
// `count` bytes, and numbers in big-endian order themselves.
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
    number = 0;  // all keys start with no bytes
  } else {
    number += is_prefix || behind ? Key{1} << bits_behind : Key{0};
  }
  return {number, length == count, (is_prefix || behind) && number == 0};
}

}  // namespace cairn
