// Calibration/<key>/n:<log2 n>: the time of the trials that an index makes when it is opened, of
// the routes over cpu:auto, and how well they predict. text keys are e-mail addresses. Counters:
// median_error and most_error, of predicted against measured times of batches of 2^0 to 2^22
// queries and of some sizes between them, as shares of the measured ones, over all routes and kinds
// of batches; <route>/<kind>, the median of each; regret_p95 and most_regret, of the time of the
// route that is predicted to be the fastest against the fastest one's, points and sorted points.
// With CAIRN_BENCH_CALIBRATION_TABLE each measured batch is printed. Threads are as many as the
// machine has cores, or what CAIRN_BENCH_THREADS says.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/secondary_index.h"
#include "engine/calibration.h"
#include "engine/index_router.h"
#include "engine/resident_indexes.h"
#include "index/run_columns.h"
#include "index/topology.h"
#include "tools/bench/data.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench {
namespace {

using Curve = CostCurves::Curve;

constexpr size_t kLargestBatch = size_t{1} << 22;
constexpr size_t kQueries = 2 * kLargestBatch;  // asked in turn, in batches
// A batch is measured until its times add up to this, within bounds.
constexpr double kMeasuredNanoseconds = 20e6;
constexpr size_t kLeastRuns = 3;
constexpr size_t kMostRuns = 201;

struct Kind {
  const char* name;
  BatchShape shape;
};
const Kind kKinds[] = {
    {"point", {Operation::kFindFirst, 0, 0, false}},
    {"sorted_point", {Operation::kFindFirst, 0, 0, true}},
    {"find", {Operation::kFind, 0, 0, false}},
    {"count", {Operation::kCount, 0, 0, false}},
};

int Threads() {
  const char* threads = std::getenv("CAIRN_BENCH_THREADS");
  return Topology::Get().Threads(threads != nullptr ? std::atoi(threads) : 0);
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 1; size <= kLargestBatch; size *= 2) {
    sizes.push_back(size);
    if (size > 2) sizes.push_back(size - size / 4);
  }
  return sizes;
}

double Now() {
  using std::chrono::duration;
  return duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The value that nineteen in twenty do not exceed.
double Percentile95(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() * 95 / 100];
}

SortedRun RunOf(const std::string& key, size_t n) {
  if (key == "u32") return MakeRun(UniformKeys<uint32_t>(n));
  if (key == "u64") return MakeRun(UniformKeys<uint64_t>(n));
  const Strings& strings = StringSet("email", n);
  std::vector<RowId> rows(strings.keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  return *SortedRun::FromSorted(absl::MakeConstSpan(strings.keys), rows);
}

// Queries for all kinds of batches.
class Queries {
 public:
  explicit Queries(const SortedRun& run)
      : run_(run), lower_(run.kind()), upper_(run.kind()), sorted_(run.kind()) {
    Random random(kSeed + 7);
    for (size_t i = 0; i < kQueries; ++i) {
      const size_t position = random.Below(run.size());
      Append(position, &lower_);
      Append(std::min(position + 100, run.size() - 1), &upper_);
    }
    lower_batch_ = lower_.Batch();
    upper_batch_ = upper_.Batch();
    rows_.resize(kLargestBatch);
    counts_.resize(kLargestBatch);
  }

  // Nanoseconds of one batch.
  absl::StatusOr<double> Time(const Route& route, const BatchShape& shape) {
    const size_t first = Next(shape.queries);
    KeyBatch keys = lower_batch_.Slice(first, shape.queries);
    const RangeBatch ranges = RangeBatch::HalfOpen(keys, upper_batch_.Slice(first, shape.queries));
    if (shape.sorted) keys = Sorted(shape.queries);
    QueryOptions options;
    options.sorted_input = shape.sorted;
    absl::Status status;
    const double start = Now();
    switch (shape.operation) {
      case Operation::kFind:
        status = route.Find(keys, options, &matches_);
        break;
      case Operation::kCount:
        status = route.Count(ranges, absl::MakeSpan(counts_).first(shape.queries));
        break;
      default:
        status = route.FindFirst(keys, options, absl::MakeSpan(rows_).first(shape.queries));
        break;
    }
    const double time = Now() - start;
    if (!status.ok()) return status;
    return time;
  }

 private:
  void Append(size_t position, KeyColumn* to) const {
    WithColumn(run_, [&](const auto& column) { column.Append(position, to); });
  }
  size_t Next(size_t queries) {
    if (next_ + queries > kQueries) next_ = 0;
    next_ += queries;
    return next_ - queries;
  }
  // Random positions in ascending order, by sums of random gaps.
  KeyBatch Sorted(size_t queries) {
    sorted_.Clear(run_.kind());
    std::vector<double> sums(queries + 1);
    double sum = 0;
    for (double& at : sums) {
      sum -= std::log(1 - static_cast<double>(random_.Below(1 << 30)) / (1 << 30));
      at = sum;
    }
    for (size_t i = 0; i < queries; ++i) {
      Append(static_cast<size_t>(sums[i] / sum * static_cast<double>(run_.size() - 1)), &sorted_);
    }
    return sorted_.Batch();
  }

  const SortedRun& run_;
  Random random_{kSeed + 8};
  size_t next_ = 0;
  KeyColumn lower_, upper_, sorted_;
  KeyBatch lower_batch_, upper_batch_;
  std::vector<RowId> rows_;
  std::vector<uint64_t> counts_;
  Matches matches_;
};

absl::StatusOr<double> MedianTime(Queries* queries, const Route& route, const BatchShape& shape) {
  std::vector<double> times;
  double sum = 0;
  while (times.size() < kLeastRuns || (sum < kMeasuredNanoseconds && times.size() < kMostRuns)) {
    const absl::StatusOr<double> time = queries->Time(route, shape);
    if (!time.ok()) return time;
    times.push_back(*time);
    sum += *time;
  }
  return Median(times);
}

// A batch on each route.
struct Measured {
  std::vector<double> predicted, times;  // infinite where the route does not take it
  double Regret() const {
    const size_t chosen = static_cast<size_t>(std::min_element(predicted.begin(), predicted.end()) -
                                              predicted.begin());
    return times[chosen] / *std::min_element(times.begin(), times.end());
  }
};

void SetCounters(const std::vector<const Route*>& routes,
                 const std::map<std::string, std::vector<Measured>>& by_kind,
                 benchmark::State* state) {
  std::vector<double> errors, regrets;
  for (const auto& [kind, batches] : by_kind) {
    for (size_t r = 0; r < routes.size(); ++r) {
      std::vector<double> of_route;
      for (const Measured& batch : batches) {
        if (std::isinf(batch.times[r])) continue;
        of_route.push_back(std::abs(batch.predicted[r] / batch.times[r] - 1));
      }
      if (of_route.empty()) continue;
      errors.insert(errors.end(), of_route.begin(), of_route.end());
      state->counters[routes[r]->name() + "/" + kind] = Median(of_route);
    }
    for (const Measured& batch : batches) regrets.push_back(batch.Regret());
  }
  state->counters["median_error"] = Median(errors);
  state->counters["most_error"] = *std::max_element(errors.begin(), errors.end());
  state->counters["regret_p95"] = Percentile95(regrets);
  state->counters["most_regret"] = *std::max_element(regrets.begin(), regrets.end());
}

void CalibrateAndCompare(benchmark::State& state, const std::string& key, int log2_n) {
  const bool table = std::getenv("CAIRN_BENCH_CALIBRATION_TABLE") != nullptr;
  const SortedRun run = RunOf(key, size_t{1} << log2_n);
  const auto resident = MakeResidentIndexes(OpenOptions(), run);
  if (!resident.ok()) return state.SkipWithError(resident.status().ToString().c_str());
  const std::vector<Route> made = MakeRoutes(*resident, Threads());
  std::vector<const Route*> routes;
  for (const Route& route : made) routes.push_back(&route);
  CalibrationOptions options;
  options.threads = Threads();

  std::vector<absl::StatusOr<CostCurves>> curves;
  for (auto _ : state) {
    auto calibrated = Calibrate(routes, run, options);
    if (!calibrated.ok()) return state.SkipWithError(calibrated.status().ToString().c_str());
    curves = *std::move(calibrated);
  }
  Queries queries(run);
  std::map<std::string, std::vector<Measured>> by_kind;
  for (Kind kind : kKinds) {
    for (const size_t size : Sizes()) {
      kind.shape.queries = size;
      Measured measured;
      for (size_t r = 0; r < routes.size(); ++r) {
        if (!curves[r].ok()) return state.SkipWithError(curves[r].status().ToString().c_str());
        measured.predicted.push_back(curves[r]->Time(kind.shape));
        measured.times.push_back(std::numeric_limits<double>::infinity());
        if (!routes[r]->Takes(kind.shape.operation, ResultOrder::kCaller)) continue;
        const auto time = MedianTime(&queries, *routes[r], kind.shape);
        if (!time.ok()) return state.SkipWithError(time.status().ToString().c_str());
        measured.times.back() = *time;
        if (table) {
          std::fprintf(
              stderr, "%s n:%d %-24s %-12s %8zu predicted %12.0f measured %12.0f %+5.0f%%\n",
              key.c_str(), log2_n, routes[r]->name().c_str(), kind.name, size,
              measured.predicted.back(), *time, 100 * (measured.predicted.back() / *time - 1));
        }
      }
      by_kind[kind.name].push_back(std::move(measured));
    }
  }
  SetCounters(routes, by_kind, &state);
}

const bool registered = [] {
  for (const char* key : {"u32", "u64", "text"}) {
    for (const int log2_n : {16, 20, 24}) {
      benchmark::RegisterBenchmark(
          absl::StrFormat("Calibration/%s/n:%d", key, log2_n).c_str(),
          [key, log2_n](benchmark::State& state) { CalibrateAndCompare(state, key, log2_n); })
          ->Unit(benchmark::kMillisecond)
          ->Iterations(3);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
