#pragma once

#include <cstdint>

namespace cairn {

// The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection.
inline uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The next random number of splitmix64; the same sequence on every machine.
inline uint64_t NextRandom(uint64_t* state) {
  return MixBits(*state += 0x9E3779B97F4A7C15);
}

}  // namespace cairn
