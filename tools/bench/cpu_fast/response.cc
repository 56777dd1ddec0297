// Response/<route>/<key>/n:<k>/batch:<b>[/threads:<t>]: the throughput of a batch of 2^b random
// keys of the index, against its response time: figure 11 of Kim et al., FAST (SIGMOD 2010). Row
// ids, in the caller's order. A route is an index and a strategy, as the router names them. Without
// a strategy it is unbuffered; "+sort_based" takes the fastest sorted search,
// "+sort_based,index" and "+sort_based,merge" one of them. Text keys have sixteen digits. Batches
// that are large enough for several threads also run with one thread per core. n is
// CAIRN_BENCH_LOG2_N, 24 by default. Counters: ns_per_query, queries_per_s, response_us (of one
// batch). tools/bench/plot draws the results.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/batch/strategy.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "tools/bench/data.h"
#include "tools/bench/registration.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::response {
namespace {

constexpr int kMaxLog2Batch = 22;

// Queries, used in turn, so that small batches do not repeat the same keys.
constexpr size_t kQueries = size_t{4} << kMaxLog2Batch;

// Answers are verified for up to kVerified queries and kVerifiedBatches batches, at least one.
constexpr size_t kVerified = size_t{1} << 20;
constexpr size_t kVerifiedBatches = size_t{1} << 12;

struct Route {
  std::string index;
  std::string strategy;  // as in the route's name
  StrategyOptions options;
  int min_log2_batch = 0;
};

Route Unbuffered(const char* index) {
  return {index, "", {}};
}

Route Buffered(const char* index) {
  Route route = {index, "+buffered", {}};
  route.options.strategy = Strategy::kBuffered;
  return route;
}

Route SortBased(const char* index) {
  Route route = {index, "+sort_based", {}};
  route.options.strategy = Strategy::kSortBased;
  return route;
}

// The sort-based route with one of the two ways of SortedSearch, to compare them. Both ways are
// slow for small batches, so they are measured only from 2^16 queries on.
Route SortBased(const char* index, SortedSearch search) {
  Route route = SortBased(index);
  route.strategy += search == SortedSearch::kMerge ? ",merge" : ",index";
  route.options.sorted_search = search;
  route.min_log2_batch = 16;
  return route;
}

const std::vector<Route>& NumberRoutes() {
  static const auto& routes = *new std::vector<Route>{
      Unbuffered("cpu:packed"),
      Buffered("cpu:packed"),
      SortBased("cpu:packed"),
      SortBased("cpu:packed", SortedSearch::kIndex),
      SortBased("cpu:packed", SortedSearch::kMerge),
      Unbuffered("cpu:fast"),
      Buffered("cpu:fast"),
      SortBased("cpu:fast"),
      SortBased("cpu:fast", SortedSearch::kIndex),
      SortBased("cpu:fast", SortedSearch::kMerge),
      Unbuffered("cpu:fast,compressed"),
      Unbuffered("gpu:packed"),
  };
  return routes;
}

const std::vector<Route>& TextRoutes() {
  static const auto& routes = *new std::vector<Route>{
      Unbuffered("cpu:partial_key"), Buffered("cpu:partial_key"), SortBased("cpu:partial_key")};
  return routes;
}

template <typename Key>
SortedRun MakeSubjectRun(size_t n) {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    const std::vector<std::string_view>& keys = StringSet("dig16", n).keys;
    std::vector<RowId> rows(keys.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = ScatteredRow(i, rows.size());
    auto run = SortedRun::FromSorted(absl::MakeConstSpan(keys), rows);
    if (!run.ok()) {
      std::fprintf(stderr, "benchmark data: %s\n", run.status().ToString().c_str());
      std::abort();
    }
    return *std::move(run);
  } else {
    return MakeRun(UniformKeys<Key>(n));
  }
}

// A run, its queries with the rows that answer them, and the last index.
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
      ASSIGN_OR_RETURN(index_, MakeOrderedIndex(name, run_));
      name_ = name;
    }
    return index_.get();
  }
  absl::Span<const Key> queries() const { return queries_; }
  absl::Span<const RowId> rows() const { return rows_; }

 private:
  explicit Subject(int log2_n) : run_(MakeSubjectRun<Key>(size_t{1} << log2_n)) {
    Random random(kSeed + 2);
    std::vector<uint64_t> ends = {0};  // in heap_
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t p = random.Below(run_.size());
      rows_.push_back(run_.row_ids()[p]);
      if constexpr (std::is_same_v<Key, uint32_t>) {
        queries_.push_back(run_.u32()[p]);
      } else if constexpr (std::is_same_v<Key, uint64_t>) {
        queries_.push_back(run_.u64()[p]);
      } else {
        // A copy, so that queries do not load the run's key into the cache.
        heap_ += run_.bytes()[p];
        ends.push_back(heap_.size());
      }
    }
    if constexpr (std::is_same_v<Key, std::string_view>) {
      for (size_t i = 0; i < kQueries; ++i) {
        queries_.emplace_back(heap_.data() + ends[i], ends[i + 1] - ends[i]);
      }
    }
  }

  const SortedRun run_;
  std::string heap_;  // of queries_, if they are text
  std::vector<Key> queries_;
  std::vector<RowId> rows_;
  std::unique_ptr<OrderedIndex> index_;
  std::string name_;
};

template <typename Key>
void Response(benchmark::State& state, const Route& route, int log2_n, int log2_batch,
              int threads) {
  Subject<Key>& subject = Subject<Key>::Get(log2_n);
  const auto index = subject.Index(route.index);
  if (!index.ok()) return state.SkipWithError(index.status().ToString().c_str());
  const size_t size = size_t{1} << log2_batch;
  std::vector<RowId> out(size);
  StrategyScratchPool pool;
  size_t first = 0;
  const auto ask = [&] {
    const absl::Status s = Execute(
        **index, Batch::FindFirst(subject.queries().subspan(first, size), absl::MakeSpan(out)),
        route.options, Parallelism{threads}, &pool);
    if (!s.ok()) state.SkipWithError(s.ToString().c_str());
    return s.ok();
  };
  if (!ask()) return;  // a first call allocates
  for (auto _ : state) {
    first = first + 2 * size <= kQueries ? first + size : 0;
    if (!ask()) return;
    benchmark::ClobberMemory();
  }
  const size_t verified = std::max(size, std::min(kVerified, size * kVerifiedBatches));
  for (first = 0; first < verified; first += size) {
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
void Register(const char* key_name, const Route& route, int log2_n, int log2_batch, int threads) {
  std::string name = absl::StrFormat("Response/%s%s/%s/n:%d/batch:%d", route.index, route.strategy,
                                     key_name, log2_n, log2_batch);
  if (threads > 1) absl::StrAppendFormat(&name, "/threads:%d", threads);
  benchmark::RegisterBenchmark(name.c_str(), [=, &route](benchmark::State& state) {
    Response<Key>(state, route, log2_n, log2_batch, threads);
  })->UseRealTime();
}

template <typename Key>
void RegisterAll(const char* key_name, const std::vector<Route>& routes) {
  const char* n = std::getenv("CAIRN_BENCH_LOG2_N");
  const int log2_n = n != nullptr ? std::atoi(n) : 24;
  const int cores = Topology::Get().cores();
  for (const Route& route : routes) {
    for (int log2_batch = route.min_log2_batch; log2_batch <= kMaxLog2Batch; ++log2_batch) {
      Register<Key>(key_name, route, log2_n, log2_batch, 1);
      const bool on_cpu = route.index.rfind("cpu:", 0) == 0;  // a GPU takes a batch as a whole
      if (on_cpu && cores > 1 && SliceCount(size_t{1} << log2_batch, Parallelism{cores}) > 1) {
        Register<Key>(key_name, route, log2_n, log2_batch, cores);
      }
    }
  }
}

const RegisterInMain registered([] {
  RegisterAll<uint32_t>("u32", NumberRoutes());
  RegisterAll<uint64_t>("u64", NumberRoutes());
  RegisterAll<std::string_view>("text", TextRoutes());
});

}  // namespace
}  // namespace cairn::bench::response
