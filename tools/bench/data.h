#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cairn/sorted_run.h"
#include "index/machine/splitmix.h"

namespace cairn::bench {

// Random numbers for data sets and queries: splitmix64, so that a seed gives the same data
// everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() { return NextRandom(&state_); }
  // Uniform in [0, n).
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<Wide>((*this)()) * n) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  uint64_t state_;
};

// The seed of every data set, unless a benchmark has another one.
inline constexpr uint64_t kSeed = 20261121;

// `n` distinct uniform random keys, ascending. n must be well below the number of possible
// keys. Keeps the last set, since benchmarks of one size follow each other.
template <typename Key>
const std::vector<Key>& UniformKeys(size_t n);

// The row id of entry i of `n`: distinct, and unordered.
inline RowId ScatteredRow(size_t i, size_t n) {
  uint64_t mask = 1;
  while (mask < n) mask *= 2;
  return static_cast<RowId>((i * 0x9E3779B1ull) & (mask - 1));
}

// Keys, ascending and distinct, with scattered row ids.
template <typename Key>
SortedRun MakeRun(const std::vector<Key>& keys);

// The counters ns_per_query and queries_per_s of a benchmark that answers `queries` queries per
// iteration.
inline void SetQueryCounters(benchmark::State& state, size_t queries) {
  const auto q = static_cast<double>(queries);
  using benchmark::Counter;
  state.counters["ns_per_query"] =
      Counter(q * 1e-9, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["queries_per_s"] = Counter(q, Counter::kIsIterationInvariantRate);
}

}  // namespace cairn::bench
