#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cairn {

// Eight bytes at `p` as an integer with the same order.
inline uint64_t LoadBigEndian(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return __builtin_bswap64(word);  // x86-64 and AArch64 are little-endian
}

// The first eight bytes of `s`, as by LoadBigEndian; missing bytes are zeros. If SliceOf(a) <
// SliceOf(b), then a < b; if they are equal, the order is undetermined.
inline uint64_t SliceOf(std::string_view s) {
  if (s.size() >= 8) return LoadBigEndian(s.data());
  char padded[8] = {};
  if (!s.empty()) std::memcpy(padded, s.data(), s.size());
  return LoadBigEndian(padded);
}

// Whether they are equal, without a call for strings of 8 to 64 bytes, as most keys are.
inline bool Equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const size_t size = a.size();
  if (size < 8 || size > 64) return size == 0 || std::memcmp(a.data(), b.data(), size) == 0;
  const auto difference_at = [&](size_t i) {
    uint64_t x, y;
    std::memcpy(&x, a.data() + i, sizeof(x));
    std::memcpy(&y, b.data() + i, sizeof(y));
    return x ^ y;
  };
  uint64_t difference = difference_at(size - 8);
  for (size_t i = 0; i + 8 < size; i += 8) difference |= difference_at(i);
  return difference == 0;
}

// The length of the common prefix of two strings that share at least their first `known` bytes.
inline size_t CommonPrefix(std::string_view a, std::string_view b, size_t known) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t i = known;
  for (; i + 8 <= shorter; i += 8) {
    const uint64_t difference = LoadBigEndian(a.data() + i) ^ LoadBigEndian(b.data() + i);
    if (difference != 0) return i + static_cast<size_t>(__builtin_clzll(difference)) / 8;
  }
  if (i < shorter && shorter >= 8) {  // the last word, which overlaps bytes known to be equal
    const size_t last = shorter - 8;
    const uint64_t difference = LoadBigEndian(a.data() + last) ^ LoadBigEndian(b.data() + last);
    return difference == 0 ? shorter : last + static_cast<size_t>(__builtin_clzll(difference)) / 8;
  }
  while (i < shorter && a[i] == b[i]) ++i;
  return i;
}

// Whether a < b (negative), a = b, or a > b (positive), given the length of their common prefix.
inline int CompareBehind(std::string_view a, std::string_view b, size_t common_prefix) {
  const int byte_a = common_prefix < a.size() ? static_cast<uint8_t>(a[common_prefix]) : -1;
  const int byte_b = common_prefix < b.size() ? static_cast<uint8_t>(b[common_prefix]) : -1;
  return byte_a - byte_b;
}

// Whether a < b, without a call.
inline bool Less(std::string_view a, std::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  if (shorter < 8) return CompareBehind(a, b, CommonPrefix(a, b, 0)) < 0;
  for (size_t i = 0; i < shorter; i += 8) {
    const size_t at = std::min(i, shorter - 8);  // the last word may overlap bytes that are equal
    const uint64_t x = LoadBigEndian(a.data() + at), y = LoadBigEndian(b.data() + at);
    if (x != y) return x < y;
  }
  return a.size() < b.size();
}

}  // namespace cairn
