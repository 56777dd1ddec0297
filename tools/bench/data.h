#pragma once

#include <cstdint>

namespace cairn::bench {

// Random numbers for data sets and queries: splitmix64, so that a seed gives the same data
// everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n).
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<Wide>((*this)()) * n) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  uint64_t state_;
};

// The seed of every data set, unless a benchmark says otherwise.
inline constexpr uint64_t kSeed = 20261121;

}  // namespace cairn::bench
