#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cairn {

// Prefetches the cache line at `p`, which need not be a valid address.
//
// GCC 12 treats a function that only calls __builtin_prefetch as free of effects, and removes calls
// of it. The empty asm statement is an effect without cost.
inline void Prefetch(const void* p) {
  __builtin_prefetch(p);
  asm volatile("");
}

// Prefetches the cache lines of the first `bytes` bytes, at least one and at most 256. The
// processor prefetches later ones by itself.
inline void PrefetchBytes(const void* p, size_t bytes) {
  constexpr size_t kLine = 64, kMax = 256;
  const auto* const begin = static_cast<const char*>(p);
  const size_t in_line = reinterpret_cast<uintptr_t>(p) % kLine;
  const size_t end = in_line + std::clamp<size_t>(bytes, 1, kMax);
  for (size_t i = 0; i < end; i += kLine) Prefetch(begin - in_line + i);
}

}  // namespace cairn
