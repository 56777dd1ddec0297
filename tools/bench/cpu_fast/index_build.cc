// Build/<index>/<key>/n:<log2 n>: builds an ordered index over a run of uniform keys in memory,
// on all cores: the work of SecondaryIndex::Open after mapping files. Counter entries_per_s.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"

namespace cairn::bench::index_build {
namespace {

template <typename Key>
void BuildIndex(benchmark::State& state, const std::string& factory, int log2_n) {
  const SortedRun run = MakeRun(UniformKeys<Key>(size_t{1} << log2_n));
  uint64_t bytes = 0;
  for (auto _ : state) {
    auto index = MakeOrderedIndex(factory, run);
    if (!index.ok()) return state.SkipWithError(std::string(index.status().message()).c_str());
    bytes = (*index)->memory_bytes();
    state.PauseTiming();
    index->reset();
    state.ResumeTiming();
  }
  const auto n = static_cast<double>(run.size());
  state.counters["entries_per_s"] =
      benchmark::Counter(n, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_key"] = static_cast<double>(bytes) / n;
}

const bool registered = [] {
  for (int log2_n : {20, 24, 26}) {
    for (const char* index : {"cpu:fast", "cpu:packed", "cpu:packed,directory=tree"}) {
      const auto add = [&](const char* key, auto run) {
        const std::string name = absl::StrFormat("Build/%s/%s/n:%d", index, key, log2_n);
        const std::string factory = index;
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, factory, log2_n); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      };
      add("u32", BuildIndex<uint32_t>);
      add("u64", BuildIndex<uint64_t>);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::index_build
