#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define CAIRN_HASH_HD __host__ __device__
#else
#define CAIRN_HASH_HD
#endif

namespace cairn::gpu {

// The hash of a byte string, the same on host and device: a sum over its eight-byte units, the last
// one zero-padded, so that lanes can add them in any order; then its length. Multipliers
// and shifts are those of SplitMix64's finisher (Steele, Lea and Flood, OOPSLA 2014).

// The contribution of unit `number` of a string to the sum.
CAIRN_HASH_HD inline uint64_t HashUnit(uint64_t unit, uint32_t number, uint64_t seed) {
  uint64_t x = unit + seed + (uint64_t{number} + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

CAIRN_HASH_HD inline uint64_t FinishHash(uint64_t sum, uint32_t length) {
  uint64_t x = sum + uint64_t{length} * 0xD6E8FEB86659FD93;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93;
  return x ^ x >> 32;
}

}  // namespace cairn::gpu

#undef CAIRN_HASH_HD
