// Limit/random_line/<MiB>: independent random reads of 64-byte lines with many prefetches in
// flight, the bound of every index search over as much memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "index/aligned_buffer.h"
#include "tools/bench/data.h"

namespace cairn::bench {
namespace {

constexpr size_t kInFlight = 128;
constexpr size_t kReads = size_t{1} << 20;

void RandomLine(benchmark::State& state) {
  const size_t lines = (static_cast<size_t>(state.range(0)) << 20) / kCacheLineBytes;
  AlignedBuffer<uint64_t> memory(lines * 8);
  Random random(kSeed);
  for (uint64_t& word : memory) word = random();
  std::vector<uint32_t> order(kReads + kInFlight);
  uint64_t sum = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint32_t& line : order) line = static_cast<uint32_t>(random.Below(lines));
    state.ResumeTiming();
    for (size_t i = 0; i < kReads; ++i) {
      __builtin_prefetch(&memory[size_t{order[i + kInFlight]} * 8]);
      sum += memory[size_t{order[i]} * 8];
    }
    benchmark::DoNotOptimize(sum);
  }
  state.counters["ns_per_query"] = benchmark::Counter(
      static_cast<double>(kReads) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(RandomLine)
    ->Name("Limit/random_line")
    ->RangeMultiplier(8)
    ->Range(1, 1 << 12)
    ->UseRealTime();

}  // namespace
}  // namespace cairn::bench
