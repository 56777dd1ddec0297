// Response/<route>/<key>/n:<k>/batch:<b>: the throughput of a batch of 2^b random keys that are
// there, against its response time: figure 11 of Kim et al., FAST (SIGMOD 2010). Row ids, in the
// caller's order, one thread. A route is an index and a strategy: one without a strategy is
// unbuffered;
// "+sort" sorts and takes the fastest sorted search, "+sort_index", "+sort_gallop" and
// "+sort_merge" one of them. n is CAIRN_BENCH_LOG2_N, 24 where it is not set. Counters:
// ns_per_query, queries_per_s, response_us (of one batch).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/batch_answer.h"
#include "cpu_fast/strategy.h"
#include "tools/bench/data.h"

namespace cairn::bench {
namespace {

// Queries that are asked in turn, in batches, so that small ones are not the same keys each time.
constexpr size_t kQueries = size_t{1} << 24;

// How many of them are looked at for wrong answers, at least one batch.
constexpr size_t kVerified = size_t{1} << 20;

struct Route {
  const char* name;
  const char* index;
  StrategyOptions options;
};

StrategyOptions Sorted(SortedSearch search) {
  StrategyOptions options;
  options.strategy = Strategy::kSortBased;
  options.sorted_search = search;
  return options;
}

StrategyOptions Buffered() {
  StrategyOptions options;
  options.strategy = Strategy::kBuffered;
  return options;
}

const Route kRoutes[] = {
    {"cpu:fast", "cpu:fast", {}},
    {"cpu:fast,compressed", "cpu:fast,compressed", {}},
    {"cpu:fast+buffered", "cpu:fast", Buffered()},
    {"cpu:fast+sort", "cpu:fast", Sorted(SortedSearch::kFastest)},
    {"cpu:fast+sort_index", "cpu:fast", Sorted(SortedSearch::kIndex)},
    {"cpu:fast+sort_merge", "cpu:fast", Sorted(SortedSearch::kMerge)},
};

// A run, its queries with the rows that answer them, and the index that was asked for last.
template <typename Key>
class Subject {
 public:
  static Subject& Get(int log2_n) {
    static std::unique_ptr<Subject> subject;
    if (subject == nullptr) subject.reset(new Subject(log2_n));
    return *subject;
  }

  absl::StatusOr<const OrderedIndex*> Index(const std::string& name) {
    if (index_ == nullptr || name_ != name) {
      index_.reset();
      auto made = MakeOrderedIndex(name, run_);
      if (!made.ok()) return made.status();
      index_ = *std::move(made);
      name_ = name;
    }
    return index_.get();
  }
  absl::Span<const Key> queries() const { return queries_; }
  absl::Span<const RowId> rows() const { return rows_; }

 private:
  explicit Subject(int log2_n) : run_(MakeRun(UniformKeys<Key>(size_t{1} << log2_n))) {
    Random random(kSeed + 2);
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t p = random.Below(run_.size());
      if constexpr (sizeof(Key) == 4) {
        queries_.push_back(run_.u32()[p]);
      } else {
        queries_.push_back(run_.u64()[p]);
      }
      rows_.push_back(run_.row_ids()[p]);
    }
  }

  const SortedRun run_;
  std::vector<Key> queries_;
  std::vector<RowId> rows_;
  std::unique_ptr<OrderedIndex> index_;
  std::string name_;
};

template <typename Key>
void Response(benchmark::State& state, const Route& route, int log2_n, int log2_batch) {
  Subject<Key>& subject = Subject<Key>::Get(log2_n);
  const auto index = subject.Index(route.index);
  if (!index.ok()) return state.SkipWithError(index.status().ToString().c_str());
  const size_t size = size_t{1} << log2_batch;
  std::vector<RowId> out(size);
  StrategyScratch scratch;
  size_t first = 0;
  const auto ask = [&] {
    const absl::Status s = FindFirst(**index, BatchOf(subject.queries().subspan(first, size)),
                                     absl::MakeSpan(out), route.options, &scratch);
    if (!s.ok()) state.SkipWithError(s.ToString().c_str());
    return s.ok();
  };
  if (!ask()) return;  // a first call allocates
  for (auto _ : state) {
    first = first + 2 * size <= kQueries ? first + size : 0;
    if (!ask()) return;
    benchmark::ClobberMemory();
  }
  for (first = 0; first < std::max(size, kVerified); first += size) {
    if (!ask()) return;
    if (absl::MakeConstSpan(out) != subject.rows().subspan(first, size)) {
      return state.SkipWithError("wrong row ids");
    }
  }
  SetQueryCounters(state, size);
  using benchmark::Counter;
  state.counters["response_us"] =
      Counter(1e-6, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

template <typename Key>
void Register(const char* key_name, const Route& route, int log2_n, int log2_batch) {
  const std::string name =
      absl::StrFormat("Response/%s/%s/n:%d/batch:%d", route.name, key_name, log2_n, log2_batch);
  benchmark::RegisterBenchmark(name.c_str(), [&route, log2_n, log2_batch](benchmark::State& state) {
    Response<Key>(state, route, log2_n, log2_batch);
  })->UseRealTime();
}

const bool registered = [] {
  const char* n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 24;
  for (const Route& route : kRoutes) {
    for (int log2_batch = 6; log2_batch <= 24; log2_batch += 2) {
      Register<uint32_t>("u32", route, log2_n, log2_batch);
      Register<uint64_t>("u64", route, log2_n, log2_batch);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
