#pragma once

namespace cairn {

// Asks the caches for the line at `p`, which need not be valid.
//
// GCC 12 takes a function that does nothing but __builtin_prefetch for one without an effect, and
// drops calls of it. The empty statement is an effect that costs nothing.
inline void Prefetch(const void* p) {
  __builtin_prefetch(p);
  asm volatile("");
}

}  // namespace cairn
