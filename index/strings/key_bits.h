#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "index/strings/string_compare.h"

namespace cairn {

// Bits of a key are numbered from 0, the most significant one of its first byte; all bits past
// its end are 0. So "a" and "a\0" have the same bits, and only their lengths distinguish them. If
// the bits of two keys differ, the first different bit orders them.
inline constexpr uint64_t kNoBit = UINT64_MAX;

// The first bit that differs between two keys that share at least their first `known` bytes; kNoBit
// if all bits are the same.
inline uint64_t FirstDifferentBit(std::string_view a, std::string_view b, size_t known = 0) {
  const std::string_view longer = a.size() < b.size() ? b : a;
  const size_t shorter = std::min(a.size(), b.size());
  size_t i = CommonPrefix(a, b, known);
  if (i == shorter) {
    while (i < longer.size() && longer[i] == 0) ++i;
    if (i == longer.size()) return kNoBit;
  }
  const int byte_a = i < a.size() ? static_cast<uint8_t>(a[i]) : 0;
  const int byte_b = i < b.size() ? static_cast<uint8_t>(b[i]) : 0;
  const auto difference = static_cast<uint32_t>(byte_a ^ byte_b);
  return uint64_t{i} * 8 + static_cast<uint64_t>(__builtin_clz(difference)) - 24;
}

}  // namespace cairn
