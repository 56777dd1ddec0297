#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cairn {

// Asks the caches for the line at `p`, which need not be valid.
//
// GCC 12 takes a function that does nothing but __builtin_prefetch for one without an effect, and
// drops calls of it. The empty statement is an effect that costs nothing.
inline void Prefetch(const void* p) {
  __builtin_prefetch(p);
  asm volatile("");
}

// Asks for the lines of the first `bytes`, at least one, at most 256 bytes; the processor goes on
// by itself.
inline void PrefetchBytes(const void* p, size_t bytes) {
  constexpr size_t kLine = 64, kMax = 256;
  const auto* const begin = static_cast<const char*>(p);
  const size_t in_line = reinterpret_cast<uintptr_t>(p) % kLine;
  const size_t end = in_line + std::clamp<size_t>(bytes, 1, kMax);
  for (size_t i = 0; i < end; i += kLine) Prefetch(begin - in_line + i);
}

}  // namespace cairn
