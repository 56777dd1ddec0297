// FastPaper/<step>/u32/n:<k>: the tree of Kim et al., FAST (SIGMOD 2010), with one more
// optimization in each step, as in figure 6 of the paper:
//
// - binary_search: binary search in the sorted column;
// - page: a tree with blocking for pages;
// - line: also for cache lines;
// - simd: also for SSE registers;
// - pipeline_8: also a software pipeline of 8 queries, as in the paper;
// - pipeline_32: the same with 32 queries.
//
// Pages have 2 MB, or 4 KB in steps whose names end in _4k. One thread executes batches of 2^20
// uniform random queries over 2^k uniform random keys. k is 16 to CAIRN_BENCH_MAX_LOG2_N, 24 by
// default. FastPaper/build/u32/n:<k> builds the tree with all blockings, on all cores; the paper
// reports less than 0.1 s for 64 M keys (n:26) in section 5.1.1. Counters: ns_per_query,
// queries_per_s, bytes_per_key, keys_per_s.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "tools/bench/data.h"
#include "tools/bench/papers/paper_tree.h"

namespace cairn::bench {
namespace {

constexpr size_t kBatch = size_t{1} << 20;
constexpr size_t kBatches = 4;  // used in turn

int Threads() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Keys, and queries with their positions; of the last size.
struct Subject {
  explicit Subject(size_t n) : keys(UniformKeys<uint32_t>(n)) {
    Random random(kSeed + 3);
    for (size_t i = 0; i < kBatches * kBatch; ++i) {
      queries.push_back(static_cast<uint32_t>(random()));
      const auto at = std::lower_bound(keys.begin(), keys.end(), queries[i]);
      positions.push_back(static_cast<Position>(at - keys.begin()));
    }
  }
  static const Subject& Get(int log2_n) {
    static std::unique_ptr<Subject> subject;
    const size_t n = size_t{1} << log2_n;
    if (subject == nullptr || subject->keys.size() != n) {
      subject.reset();
      subject = std::make_unique<Subject>(n);
    }
    return *subject;
  }

  const std::vector<uint32_t> keys;
  std::vector<uint32_t> queries;
  std::vector<Position> positions;
};

// search(queries, positions) answers batch after batch.
template <typename Search>
void Measure(benchmark::State& state, const Subject& subject, Search search) {
  std::vector<Position> out(kBatch);
  const auto ask = [&](size_t batch) {
    const size_t first = batch % kBatches * kBatch;
    search(absl::MakeConstSpan(subject.queries).subspan(first, kBatch), out.data());
    return first;
  };
  size_t batch = 0;
  for (auto _ : state) {
    ask(batch++);
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    const size_t first = ask(b);
    if (!std::equal(out.begin(), out.end(), subject.positions.begin() + first)) {
      return state.SkipWithError("wrong positions");
    }
  }
  SetQueryCounters(state, kBatch);
}

void BinarySearch(benchmark::State& state, int log2_n) {
  const Subject& subject = Subject::Get(log2_n);
  Measure(state, subject, [&](absl::Span<const uint32_t> queries, Position* out) {
    for (size_t i = 0; i < queries.size(); ++i) {
      const auto at = std::lower_bound(subject.keys.begin(), subject.keys.end(), queries[i]);
      out[i] = static_cast<Position>(at - subject.keys.begin());
    }
  });
}

template <PaperBlocking kBlocking, size_t kPageBytes, size_t kInFlight>
void Step(benchmark::State& state, int log2_n) {
  const Subject& subject = Subject::Get(log2_n);
  const PaperTree<kBlocking, kPageBytes> tree(subject.keys, Threads());
  Measure(state, subject, [&](absl::Span<const uint32_t> queries, Position* out) {
    tree.template LowerBound<kInFlight>(queries, out);
  });
  state.counters["bytes_per_key"] =
      static_cast<double>(tree.memory_bytes()) / static_cast<double>(subject.keys.size());
}

void Build(benchmark::State& state, int log2_n) {
  const std::vector<uint32_t>& keys = UniformKeys<uint32_t>(size_t{1} << log2_n);
  for (auto _ : state) {
    const PaperTree<PaperBlocking::kSimd, kPaperPage2M> tree(keys, Threads());
    benchmark::DoNotOptimize(tree.memory_bytes());
  }
  state.counters["keys_per_s"] = benchmark::Counter(static_cast<double>(keys.size()),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

void Register(const std::string& step, int log2_n, void (*run)(benchmark::State&, int)) {
  const std::string name = absl::StrFormat("FastPaper/%s/u32/n:%d", step, log2_n);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { run(state, log2_n); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

template <size_t kPageBytes>
void RegisterSteps(const std::string& suffix, int log2_n) {
  Register("page" + suffix, log2_n, Step<PaperBlocking::kPage, kPageBytes, 1>);
  Register("line" + suffix, log2_n, Step<PaperBlocking::kLine, kPageBytes, 1>);
  Register("simd" + suffix, log2_n, Step<PaperBlocking::kSimd, kPageBytes, 1>);
  Register("pipeline_8" + suffix, log2_n, Step<PaperBlocking::kSimd, kPageBytes, 8>);
  Register("pipeline_32" + suffix, log2_n, Step<PaperBlocking::kSimd, kPageBytes, 32>);
}

const bool registered = [] {
  const char* most = std::getenv("CAIRN_BENCH_MAX_LOG2_N");
  const int max_log2_n = most != nullptr ? std::atoi(most) : 24;
  for (int log2_n = 16; log2_n <= max_log2_n; log2_n += 2) {
    Register("binary_search", log2_n, BinarySearch);
    RegisterSteps<kPaperPage2M>("", log2_n);
    RegisterSteps<kPaperPage4K>("_4k", log2_n);
    Register("build", log2_n, Build);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
