// Regret/<key>/n:<k>: the distance of the router's choices from the best ones. A cell is a batch
// size, 2^0 to 2^22, and an operation: point (FindFirst of keys of the index), range (Scan of
// ranges of eight entries each, up to 2^20 of them) or count. In each cell the routes are timed
// alternately, and the time of the router's choice is divided by that of the best. The router's
// cost models come from earlier trials, independent of the cells. Counters: cells,
// share_within_1_10 (of the cells), worst, and trials_ms; the label lists the cells beyond 1.10,
// with the predicted and the measured microseconds of the two routes.
//
// Routing/<key>/n:<k>/batch:<b>/<direct|routed>: FindFirst by the ordered index itself, or through
// the router with its clock, counters and observation. Counters: ns_per_query, response_ns.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "engine/route/router.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "tools/bench/data.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::routing {
namespace {

constexpr size_t kQueries = size_t{1} << 22;
constexpr size_t kMaxRanges = size_t{1} << 20;
constexpr Position kHits = 8;
// The minimum duration of a timing of a route, and the number of timings.
constexpr double kMinNanoseconds = 300'000;
constexpr int kTimes = 7;
constexpr int kTimesIfLong = 3;  // beyond 100 ms

double Now() {
  return static_cast<double>(Router::SteadyNanoseconds());
}

// A run with routes over it, and queries.
template <typename Key>
class Subject {
 public:
  static Subject& Get(int log2_n) {
    static std::unique_ptr<Subject> subject;
    static int made_for = -1;
    if (made_for != log2_n) {
      subject.reset();
      subject.reset(new Subject(log2_n));
      made_for = log2_n;
    }
    return *subject;
  }

  const absl::Status& status() const { return status_; }
  const Router& router() const { return router_->router(); }
  double trials_ms() const { return trials_ms_; }
  const OrderedIndex& index() const { return *resident_.indexes.front().index; }

  KeyBatch Points(size_t first, size_t size) const {
    return absl::MakeConstSpan(points_).subspan(first, size);
  }
  RangeBatch Ranges(size_t first, size_t size) const {
    return RangeBatch::HalfOpen(absl::MakeConstSpan(lower_).subspan(first, size),
                                absl::MakeConstSpan(upper_).subspan(first, size));
  }

 private:
  explicit Subject(int log2_n) : run_(Run(size_t{1} << log2_n)) {
    Random random(kSeed + 7);
    for (size_t i = 0; i < kQueries; ++i) points_.push_back(KeyAt(random.Below(run_.size())));
    for (size_t i = 0; i < kMaxRanges; ++i) {
      const size_t p = random.Below(run_.size() - kHits);
      lower_.push_back(KeyAt(p));
      upper_.push_back(KeyAt(p + kHits));
    }
    OpenOptions options;
    constexpr bool kText = std::is_same_v<Key, std::string_view>;
    options.ordered_indexes = {"cpu:auto", kText ? "cpu:strings" : "cpu:fast,compressed"};
    if (!kText) options.ordered_indexes.push_back("gpu:auto");
    options.device = SearchDevice::kAuto;
    auto resident = MakeResidentIndexes(options, run_);
    status_ = resident.status();
    if (!status_.ok()) return;
    resident_ = *std::move(resident);
    const int threads = Topology::Get().cores();
    const double begin = Now();
    router_ = std::make_unique<IndexRouter>(resident_, run_, 1,
                                            IndexRouterOptions{Calibration::kTrials, threads});
    trials_ms_ = (Now() - begin) * 1e-6;
  }

  static SortedRun Run(size_t n) {
    if constexpr (std::is_same_v<Key, std::string_view>) {
      const std::vector<std::string_view>& keys = StringSet("email", n).keys;
      std::vector<RowId> rows(keys.size());
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = ScatteredRow(i, rows.size());
      return *SortedRun::FromSorted(keys, rows);
    } else {
      return MakeRun(UniformKeys<Key>(n));
    }
  }
  Key KeyAt(size_t i) const {
    if constexpr (std::is_same_v<Key, uint32_t>) return run_.u32()[i];
    if constexpr (std::is_same_v<Key, uint64_t>) return run_.u64()[i];
    if constexpr (std::is_same_v<Key, std::string_view>) return run_.bytes()[i];
  }

  const SortedRun run_;
  std::vector<Key> points_, lower_, upper_;
  absl::Status status_;
  ResidentIndexes resident_;
  std::unique_ptr<IndexRouter> router_;
  double trials_ms_ = 0;
};

// One cell of the table.
template <typename Key>
class Cell {
 public:
  Cell(Subject<Key>* subject, Operation operation, size_t size)
      : subject_(*subject), operation_(operation), size_(size) {
    if (operation == Operation::kFindFirst) rows_.resize(size);
    if (operation == Operation::kCount) counts_.resize(size);
  }

  // The median nanoseconds of a batch on each of the routes, infinite if a route does not support
  // it.
  absl::StatusOr<std::vector<double>> TimeRoutes() {
    const std::vector<const Route*> routes = subject_.router().routes();
    std::vector<std::vector<double>> times(routes.size());
    std::vector<size_t> batches(routes.size(), 1);
    int rounds = kTimes;
    for (int round = 0; round <= rounds; ++round) {
      for (size_t r = 0; r < routes.size(); ++r) {
        if (!routes[r]->Takes(operation_, ResultOrder::kCaller)) continue;
        const double begin = Now();
        for (size_t i = 0; i < batches[r]; ++i) {
          RETURN_IF_ERROR(routes[r]->Execute(Next()));
        }
        const double time = (Now() - begin) / static_cast<double>(batches[r]);
        if (round > 0) {
          times[r].push_back(time);
          continue;
        }
        batches[r] = static_cast<size_t>(std::max(1.0, kMinNanoseconds / time));
        if (time > 100e6) rounds = kTimesIfLong;
      }
    }
    std::vector<double> medians;
    for (std::vector<double>& of_route : times) {
      std::sort(of_route.begin(), of_route.end());
      medians.push_back(of_route.empty() ? 1e300 : of_route[of_route.size() / 2]);
    }
    return medians;
  }

  // The route that the router chooses, and the reason.
  absl::StatusOr<Explain> Choose() {
    Explain explain;
    Batch batch = Next();
    batch.explain = &explain;
    const double rows = operation_ == Operation::kScan ? static_cast<double>(size_ * kHits) : 0;
    RETURN_IF_ERROR(subject_.router().Execute(batch, rows));
    return explain;
  }

 private:
  Batch Next() {
    const size_t all = operation_ == Operation::kFindFirst ? kQueries : kMaxRanges;
    first_ = first_ + 2 * size_ <= all ? first_ + size_ : 0;
    switch (operation_) {
      case Operation::kCount:
        return Batch::Count(subject_.Ranges(first_, size_), absl::MakeSpan(counts_));
      case Operation::kScan:
        return Batch::Scan(subject_.Ranges(first_, size_), &matches_);
      default:
        return Batch::FindFirst(subject_.Points(first_, size_), absl::MakeSpan(rows_));
    }
  }

  Subject<Key>& subject_;
  const Operation operation_;
  const size_t size_;
  size_t first_ = 0;
  std::vector<RowId> rows_;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

double PredictedMicroseconds(const Explain& explain, const std::string& route) {
  for (const Explain::Candidate& candidate : explain.candidates) {
    if (candidate.route == route) return absl::ToDoubleMicroseconds(candidate.predicted);
  }
  return 0;
}

template <typename Key>
void Regret(benchmark::State& state, int log2_n) {
  Subject<Key>& subject = Subject<Key>::Get(log2_n);
  if (!subject.status().ok()) return state.SkipWithError(subject.status().ToString().c_str());
  const std::vector<const Route*> routes = subject.router().routes();
  double cells = 0, within = 0, worst = 1;
  std::string beyond;
  for (auto _ : state) {
    for (const Operation operation : {Operation::kFindFirst, Operation::kScan, Operation::kCount}) {
      const size_t most = operation == Operation::kFindFirst ? kQueries : kMaxRanges;
      for (size_t size = 1; size <= most; size *= 2) {
        Cell<Key> cell(&subject, operation, size);
        const absl::StatusOr<Explain> chosen = cell.Choose();
        if (!chosen.ok()) return state.SkipWithError(chosen.status().ToString().c_str());
        const absl::StatusOr<std::vector<double>> times = cell.TimeRoutes();
        if (!times.ok()) return state.SkipWithError(times.status().ToString().c_str());
        const size_t best = std::min_element(times->begin(), times->end()) - times->begin();
        const auto name_of = [&](size_t i) { return routes[i]->name(); };
        size_t taken = 0;
        while (name_of(taken) != chosen->route) ++taken;
        const double regret = (*times)[taken] / (*times)[best];
        cells += 1;
        within += regret <= 1.1 ? 1 : 0;
        worst = std::max(worst, regret);
        if (regret > 1.1) {
          absl::StrAppendFormat(
              &beyond, " %s %d: %s (%.0f, %.0f) %.2fx of %s (%.0f, %.0f);",
              std::string(OperationName(operation)), size, name_of(taken),
              PredictedMicroseconds(*chosen, name_of(taken)), (*times)[taken] * 1e-3, regret,
              name_of(best), PredictedMicroseconds(*chosen, name_of(best)), (*times)[best] * 1e-3);
        }
      }
    }
  }
  state.SetLabel(beyond);
  state.counters["cells"] = cells;
  state.counters["share_within_1_10"] = within / cells;
  state.counters["worst"] = worst;
  state.counters["trials_ms"] = subject.trials_ms();
}

template <typename Key>
void Routing(benchmark::State& state, int log2_n, size_t size, bool routed) {
  Subject<Key>& subject = Subject<Key>::Get(log2_n);
  if (!subject.status().ok()) return state.SkipWithError(subject.status().ToString().c_str());
  const Route& direct = *subject.router().routes().front();
  std::vector<RowId> rows(size);
  size_t first = 0;
  for (auto _ : state) {
    first = first + 2 * size <= kQueries ? first + size : 0;
    const Batch batch = Batch::FindFirst(subject.Points(first, size), absl::MakeSpan(rows));
    const absl::Status status = routed ? subject.router().Execute(batch) : direct.Execute(batch);
    if (!status.ok()) return state.SkipWithError(status.ToString().c_str());
    benchmark::ClobberMemory();
  }
  SetQueryCounters(state, size);
  using benchmark::Counter;
  state.counters["response_ns"] =
      Counter(1e-9, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

template <typename Key>
void RegisterKey(const char* key_name) {
  for (const int log2_n : {16, 20, 24, 26}) {
    if (std::is_same_v<Key, std::string_view> && log2_n == 26) continue;  // 8 GB of strings
    const std::string name = absl::StrFormat("Regret/%s/n:%d", key_name, log2_n);
    benchmark::RegisterBenchmark(name.c_str(),
                                 [log2_n](benchmark::State& state) { Regret<Key>(state, log2_n); })
        ->UseRealTime()
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
    for (const size_t size : {1, 16, 4096}) {
      for (const bool routed : {false, true}) {
        const std::string routing = absl::StrFormat("Routing/%s/n:%d/batch:%d/%s", key_name, log2_n,
                                                    size, routed ? "routed" : "direct");
        benchmark::RegisterBenchmark(routing.c_str(), [log2_n, size,
                                                       routed](benchmark::State& state) {
          Routing<Key>(state, log2_n, size, routed);
        })->UseRealTime();
      }
    }
  }
}

const bool registered = [] {
  RegisterKey<uint32_t>("u32");
  RegisterKey<uint64_t>("u64");
  RegisterKey<std::string_view>("text");
  return true;
}();

}  // namespace
}  // namespace cairn::bench::routing
