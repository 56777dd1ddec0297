// PointLookup/<index>/<key>/n:<log2 n>/<row_id|position>/<uniform|dense>: cpu:fast,compressed
// compared with cpu:fast, in batches of 2^20 random keys that the index contains: section 6.2 of
// Kim et al., FAST (SIGMOD 2010). Keys are uniform, or dense: one in every three numbers, so that
// pages use 8-bit deltas. n is CAIRN_BENCH_LOG2_N, 24 by default. bytes_per_key counts the
// structure without its run. search_bytes_per_key counts the bytes that a lower bound reads,
// including the run's keys if they are the structure's leaves.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"

namespace cairn::bench::compressed_lookup {
namespace {

constexpr size_t kBatch = size_t{1} << 20;
constexpr size_t kBatches = 8;  // used in turn

enum class Keys : uint8_t { kUniform, kDense };

template <typename Key>
std::vector<Key> DenseKeys(size_t n) {
  Random random(kSeed);
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = static_cast<Key>(i * 3 + random.Below(3));
  return keys;
}

template <typename Key>
void Lookup(benchmark::State& state, const std::string& name, int log2_n, Keys keys,
            Operation query) {
  const size_t n = size_t{1} << log2_n;
  const SortedRun run = MakeRun(keys == Keys::kUniform ? UniformKeys<Key>(n) : DenseKeys<Key>(n));
  const auto index = MakeOrderedIndex(name, run);
  if (!index.ok()) return state.SkipWithError(index.status().ToString().c_str());
  Random random(kSeed + 1);
  std::vector<Key> queries(kBatches * kBatch);
  std::vector<uint32_t> answers(queries.size()), out(kBatch);
  for (size_t i = 0; i < queries.size(); ++i) {
    const size_t p = random.Below(n);
    queries[i] = run.keys<Key>()[p];
    answers[i] = query == Operation::kLowerBound ? static_cast<Position>(p) : run.row_ids()[p];
  }
  const auto ask = [&](size_t batch) {
    const absl::Span<const Key> keys_of_batch(queries.data() + batch % kBatches * kBatch, kBatch);
    Batch asked{query, keys_of_batch};
    asked.values = absl::MakeSpan(out);
    if (!(*index)->Execute(asked).ok()) {
      state.SkipWithError("the index answers with an error");
    }
  };
  size_t batch = 0;
  for (auto _ : state) {
    ask(batch++);
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    ask(b);
    if (!std::equal(out.begin(), out.end(), answers.begin() + b * kBatch)) {
      return state.SkipWithError("wrong answers");
    }
  }
  SetQueryCounters(state, kBatch);
  const double bytes = static_cast<double>((*index)->memory_bytes()) / static_cast<double>(n);
  const bool leaves_are_run = name != "cpu:fast,compressed";
  state.counters["bytes_per_key"] = bytes;
  state.counters["search_bytes_per_key"] = bytes + (leaves_are_run ? sizeof(Key) : 0);
}

template <typename Key>
void Register(const char* key_name, const std::string& index, int log2_n, Keys keys,
              Operation query) {
  const std::string name = absl::StrFormat("PointLookup/%s/%s/n:%d/%s/%s", index, key_name, log2_n,
                                           query == Operation::kFindFirst ? "row_id" : "position",
                                           keys == Keys::kUniform ? "uniform" : "dense");
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) { Lookup<Key>(state, index, log2_n, keys, query); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

const bool registered = [] {
  const char* n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 24;
  for (Keys keys : {Keys::kUniform, Keys::kDense}) {
    for (Operation query : {Operation::kLowerBound, Operation::kFindFirst}) {
      for (const char* index : {"cpu:fast", "cpu:fast,compressed"}) {
        if (log2_n <= 30) Register<uint32_t>("u32", index, log2_n, keys, query);
        Register<uint64_t>("u64", index, log2_n, keys, query);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::compressed_lookup
