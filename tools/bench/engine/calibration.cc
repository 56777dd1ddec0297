// Calibration/<key>/n:<log2 n>: the time of the trials that an index runs when it is opened, for
// the routes over cpu:auto, and the quality of the predictions. Text keys are e-mail addresses.
// Each iteration compares its predictions with the times of batches of 2^0 to 2^22 queries and of
// some sizes between them. A time is the lower one of the medians of two rounds. Counters:
//   median_error, max_error   relative errors of the predictions over all routes, kinds of batches,
//                              sizes and iterations;
//   <route>/<kind>             the median error of each;
//   repeat_error               the median difference between the two rounds, which bounds the
//                              accuracy of any prediction;
//   regret_p95, max_regret    the time of the route that is predicted to be the fastest, relative
//                              to the fastest route's; points, sorted points and Find
//
// CAIRN_BENCH_CALIBRATION_TABLE prints each prediction. CAIRN_BENCH_THREADS is the number of
// threads, by default one per core. CAIRN_BENCH_CPU_CLOCK times trials and batches by the thread's
// own clock: use it with one thread on a machine with other load.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/route/calibration.h"
#include "engine/route/index_router.h"
#include "engine/route/resident_indexes.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/run/run_columns.h"
#include "tools/bench/data.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::calibration {
namespace {

using Curve = CostCurves::Curve;

constexpr size_t kLargestBatch = size_t{1} << 22;
constexpr size_t kQueries = 2 * kLargestBatch;  // used in turn, in batches
// A batch is repeated until its times add up to this, within bounds.
constexpr double kMeasuredNanoseconds = 5e6;
constexpr size_t kMinRuns = 3;
constexpr size_t kMaxRuns = 201;
constexpr double kNever = std::numeric_limits<double>::infinity();

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

int64_t Now() {
  static const clockid_t clock =
      std::getenv("CAIRN_BENCH_CPU_CLOCK") != nullptr ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Nanoseconds of a clock reading.
double ClockTime() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 100; ++i) {
    const int64_t start = Now();
    least = std::min(least, Now() - start);
  }
  return static_cast<double>(least);
}

// The quantile for a share.
double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<ptrdiff_t>(share * last);
  std::nth_element(values.begin(), at, values.end());
  return *at;
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
    Batch batch{shape.operation, keys, ranges};
    batch.options.sorted_input = shape.sorted;
    batch.values = absl::MakeSpan(rows_).first(shape.queries);
    batch.counts = absl::MakeSpan(counts_).first(shape.queries);
    batch.matches = &matches_;
    const int64_t start = Now();
    const absl::Status status = route.Execute(batch);
    const auto time = static_cast<double>(Now() - start);
    if (!status.ok()) return status;
    return std::max(time - clock_time_, 1.0);
  }

 private:
  void Append(size_t position, EncodedKeys* to) const {
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
  const double clock_time_ = ClockTime();
  Random random_{kSeed + 8};
  size_t next_ = 0;
  EncodedKeys lower_, upper_, sorted_;
  KeyBatch lower_batch_, upper_batch_;
  std::vector<RowId> rows_;
  std::vector<uint64_t> counts_;
  FindResult matches_;
};

absl::StatusOr<double> MedianTime(Queries* queries, const Route& route, const BatchShape& shape) {
  std::vector<double> times;
  double sum = 0;
  while (times.size() < kMinRuns || (sum < kMeasuredNanoseconds && times.size() < kMaxRuns)) {
    ASSIGN_OR_RETURN(const double time, queries->Time(route, shape));
    times.push_back(time);
    sum += time;
  }
  return Quantile(times, 0.5);
}

// A batch on each route, in two rounds.
struct Measured {
  const char* kind;
  BatchShape shape;
  std::vector<double> first, second;  // nanoseconds; infinite if the route does not support it

  double Time(size_t route) const { return std::min(first[route], second[route]); }
};

absl::StatusOr<std::vector<double>> MeasureOnAll(Queries* queries,
                                                 const std::vector<const Route*>& routes,
                                                 const BatchShape& shape) {
  std::vector<double> times;
  for (const Route* route : routes) {
    times.push_back(kNever);
    if (!route->Takes(shape.operation, ResultOrder::kCaller)) continue;
    ASSIGN_OR_RETURN(const double time, MedianTime(queries, *route, shape));
    times.back() = time;
  }
  return times;
}

absl::StatusOr<std::vector<Measured>> Measure(const SortedRun& run,
                                              const std::vector<const Route*>& routes) {
  Queries queries(run);
  std::vector<Measured> all;
  for (Kind kind : kKinds) {
    for (const size_t size : Sizes()) {
      kind.shape.queries = size;
      all.push_back({kind.name, kind.shape, {}, {}});
    }
  }
  for (std::vector<double> Measured::*round : {&Measured::first, &Measured::second}) {
    for (Measured& measured : all) {
      ASSIGN_OR_RETURN(measured.*round, MeasureOnAll(&queries, routes, measured.shape));
    }
  }
  return all;
}

// Compares predictions with measurements.
class Comparison {
 public:
  Comparison(std::vector<const Route*> routes, std::vector<Measured> measured)
      : routes_(std::move(routes)), measured_(std::move(measured)) {
    for (const Measured& batch : measured_) {
      for (size_t r = 0; r < routes_.size(); ++r) {
        if (batch.first[r] == kNever) continue;
        repeat_errors_.push_back(std::abs(batch.second[r] / batch.first[r] - 1));
      }
    }
  }

  void Add(const std::vector<CostCurves>& curves) {
    for (const Measured& batch : measured_) {
      size_t chosen = 0;
      double least = kNever;
      for (size_t r = 0; r < routes_.size(); ++r) {
        const double time = batch.Time(r);
        if (time == kNever) continue;
        const double predicted = curves[r].Time(batch.shape);
        const double error = predicted / time - 1;
        errors_.push_back(std::abs(error));
        by_route_[routes_[r]->name() + "/" + batch.kind].push_back(std::abs(error));
        least = std::min(least, time);
        if (predicted < curves[chosen].Time(batch.shape)) chosen = r;
        if (std::getenv("CAIRN_BENCH_CALIBRATION_TABLE") != nullptr) {
          std::fprintf(stderr, "%-24s %-12s %8zu predicted %12.0f measured %12.0f %+5.0f%%\n",
                       routes_[r]->name().c_str(), batch.kind, batch.shape.queries, predicted, time,
                       100 * error);
        }
      }
      regrets_.push_back(batch.Time(chosen) / least);
    }
  }

  void SetCounters(benchmark::State* state) const {
    state->counters["median_error"] = Quantile(errors_, 0.5);
    state->counters["max_error"] = Quantile(errors_, 1);
    for (const auto& [route, errors] : by_route_) state->counters[route] = Quantile(errors, 0.5);
    state->counters["repeat_error"] = Quantile(repeat_errors_, 0.5);
    state->counters["regret_p95"] = Quantile(regrets_, 0.95);
    state->counters["max_regret"] = Quantile(regrets_, 1);
  }

 private:
  const std::vector<const Route*> routes_;
  const std::vector<Measured> measured_;
  std::vector<double> errors_, repeat_errors_, regrets_;
  std::map<std::string, std::vector<double>> by_route_;
};

void CalibrateAndCompare(benchmark::State& state, const std::string& key, int log2_n) {
  const SortedRun run = RunOf(key, size_t{1} << log2_n);
  const auto resident = MakeResidentIndexes(OpenOptions(), run);
  if (!resident.ok()) return state.SkipWithError(resident.status().ToString().c_str());
  const std::vector<Route> made = MakeRoutes(*resident, Threads());
  std::vector<const Route*> routes;
  for (const Route& route : made) routes.push_back(&route);
  CalibrationOptions options;
  options.threads = Threads();
  options.now_ns = Now;

  std::vector<std::vector<CostCurves>> calibrations;
  for (auto _ : state) {
    const auto trials = Calibrate(routes, run, options);
    if (!trials.ok()) return state.SkipWithError(trials.status().ToString().c_str());
    calibrations.emplace_back();
    for (const absl::StatusOr<CostCurves>& curves : *trials) {
      if (!curves.ok()) return state.SkipWithError(curves.status().ToString().c_str());
      calibrations.back().push_back(*curves);
    }
  }
  auto measured = Measure(run, routes);
  if (!measured.ok()) return state.SkipWithError(measured.status().ToString().c_str());
  Comparison comparison(routes, *std::move(measured));
  for (const std::vector<CostCurves>& curves : calibrations) comparison.Add(curves);
  comparison.SetCounters(&state);
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
}  // namespace cairn::bench::calibration
