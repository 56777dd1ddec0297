// Limit/random_line/<MiB>: independent random reads of 64-byte lines with many prefetches in
// flight, the bound of every index search over memory of this size.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "index/machine/aligned_buffer.h"
#include "index/machine/prefetch.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"

namespace cairn::bench {
namespace {

constexpr size_t kInFlight = 128;
constexpr size_t kReads = size_t{1} << 20;

class RandomLines {
 public:
  explicit RandomLines(size_t bytes) : lines_(bytes / kCacheLineBytes), memory_(lines_ * 8) {
    for (uint64_t& word : memory_) word = random_();
  }

  // Chooses the lines of the next kReads reads.
  void Shuffle() {
    for (uint32_t& line : order_) line = static_cast<uint32_t>(random_.Below(lines_));
  }

  void Read() {
    uint64_t sum = 0;
    for (size_t i = 0; i < kReads; ++i) {
      Prefetch(&memory_[size_t{order_[i + kInFlight]} * 8]);
      sum += memory_[size_t{order_[i]} * 8];
    }
    benchmark::DoNotOptimize(sum);
  }

 private:
  size_t lines_;
  AlignedBuffer<uint64_t> memory_;
  Random random_{kSeed};
  std::vector<uint32_t> order_ = std::vector<uint32_t>(kReads + kInFlight);
};

void RandomLine(benchmark::State& state) {
  RandomLines lines(static_cast<size_t>(state.range(0)) << 20);
  for (auto _ : state) {
    state.PauseTiming();
    lines.Shuffle();
    state.ResumeTiming();
    lines.Read();
  }
  SetQueryCounters(state, kReads);
}

BENCHMARK(RandomLine)
    ->Name("Limit/random_line")
    ->RangeMultiplier(8)
    ->Range(1, 1 << 12)
    ->UseRealTime();

}  // namespace

double RandomLineNs(size_t bytes) {
  static std::map<size_t, double> measured;
  size_t rounded = size_t{1} << 16;
  while (rounded < bytes) rounded *= 2;
  const auto [at, is_new] = measured.try_emplace(rounded, 0.0);
  if (!is_new) return at->second;
  RandomLines lines(rounded);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    lines.Shuffle();
    const auto start = std::chrono::steady_clock::now();
    lines.Read();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    times.push_back(taken.count() / kReads);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return at->second = times[times.size() / 2];
}

}  // namespace cairn::bench
