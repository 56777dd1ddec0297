#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "index/columns/column_format.h"

// Numbers in the fewest bits: number i in bits [i * width, (i + 1) * width), least significant
// first.
namespace cairn {

// The lowest width of a block that can hold `number`.
constexpr uint32_t PackedWidth(uint64_t number) {
  const auto width = static_cast<uint32_t>(std::bit_width(number));
  return width <= kMaxPackedWidth ? width : 64;
}

constexpr uint64_t PackedMask(uint32_t width) {
  return width == 0 ? 0 : UINT64_MAX >> (64 - width);
}

// Returns number i. Reads 8 bytes, which may extend past the end of the last number.
inline uint64_t ReadPacked(const char* packed, uint32_t width, uint64_t i) {
  const uint64_t bit = i * width;
  uint64_t word;
  std::memcpy(&word, packed + bit / 8, sizeof word);
  return word >> bit % 8 & PackedMask(width);
}

// Writes numbers [first, first + count) plus `base` to `out`.
inline void UnpackNumbers(const char* packed, uint32_t width, uint64_t base, uint64_t first,
                          size_t count, uint64_t* out) {
  const uint64_t mask = PackedMask(width);
  uint64_t bit = first * width;
  for (size_t i = 0; i < count; ++i, bit += width) {
    uint64_t word;
    std::memcpy(&word, packed + bit / 8, sizeof word);
    out[i] = base + (word >> bit % 8 & mask);
  }
}

// Writes numbers of at most `width` bits to the PackedBytes(count, width) bytes at `out`.
inline void PackNumbers(const uint64_t* numbers, size_t count, uint32_t width, char* out) {
  if (width == 64) {
    std::memcpy(out, numbers, count * sizeof(uint64_t));
    return;
  }
  uint64_t word = 0;
  uint32_t used = 0;
  for (size_t i = 0; i < count && width != 0; ++i) {
    word |= numbers[i] << used;
    used += width;
    if (used < 64) continue;
    std::memcpy(out, &word, sizeof word);
    out += sizeof word;
    used -= 64;
    word = used == 0 ? 0 : numbers[i] >> (width - used);
  }
  if (used != 0) std::memcpy(out, &word, sizeof word);
}

}  // namespace cairn
