#include "engine/route/calibration.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/route/calibration_ladder.h"
#include "engine/route/calibration_trials.h"
#include "engine/route/curve_fit.h"
#include "engine/route/router.h"
#include "index/machine/guard.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

using Curve = CostCurves::Curve;
using Kind = Ladder::Kind;

// A trial has this many times the queries of the previous one, or fewer if only those fit into the
// budget.
constexpr size_t kGrowth = 8;
// The largest trials. Drawing the keys of larger ones would cost more than the trials.
constexpr size_t kMaxOnCpu = size_t{1} << 18;
constexpr size_t kMaxOnGpu = size_t{1} << 20;
// The largest sorted batches, and the largest that are estimated from a slice.
constexpr size_t kMaxAscending = 512;
constexpr size_t kMaxSliced = size_t{1} << 24;
// Sorted queries that are at least this dense per entry share all the work that they can.
constexpr size_t kDensest = 16;
// Minimum and maximum number of ranges in a trial of rows.
constexpr size_t kMinRanges = 64;
constexpr size_t kMaxRanges = 512;

// Later all trials are repeated once, with at least one batch, and the shorter time counts: most
// disturbances last for a few milliseconds. So the first trials have this share of the budget.
constexpr double kFirstShare = 2.0 / 3;
// Trials end if disturbances stretch them to more than this many budgets.
constexpr double kMaxBudgets = 8;
// Size of a batch that measures the time per query of concurrent queries.
constexpr size_t kFewQueries = 256;
// The cost of waking threads is measured with up to this many threads, or with as many as the
// machine has if that is more.
constexpr int kMaxThreadsTried = 64;

class Calibrator {
 public:
  Calibrator(absl::Span<const Route* const> routes, const SortedRun& run,
             const CalibrationOptions& options)
      : routes_(routes),
        run_(run),
        options_(options),
        trials_(routes, run, options.now_ns),
        statuses_(routes.size()) {}

  std::vector<absl::StatusOr<CostCurves>> Run() {
    for (size_t i = 0; i < routes_.size(); ++i) AddLadders(i);
    TryFanOut();
    for (const bool on_gpu : {false, true}) {
      const absl::Duration budget = on_gpu ? options_.gpu_budget : options_.cpu_budget;
      Climb(on_gpu, budget);
      Repeat(on_gpu, budget);
    }
    std::vector<absl::StatusOr<CostCurves>> results;
    for (size_t i = 0; i < routes_.size(); ++i) {
      if (statuses_[i].ok()) {
        results.emplace_back(Fit(i));
      } else {
        results.emplace_back(statuses_[i]);
      }
    }
    return results;
  }

 private:
  void AddLadders(size_t i);
  // Adds and runs trials that measure how spreading a batch over threads changes its time. All
  // routes of the CPU share the result.
  void TryFanOut();
  void Climb(bool on_gpu, absl::Duration budget);
  // Repeats all trials. Stops early if that takes very long.
  void Repeat(bool on_gpu, absl::Duration budget);

  // Returns whether the ladder is of a route of that device, and the route has not failed.
  bool IsUsed(const Ladder& ladder, bool on_gpu) const {
    return routes_[ladder.route]->on_gpu() == on_gpu && statuses_[ladder.route].ok();
  }
  const Ladder* Find(size_t route, Kind kind) const;
  const Ladder* SlicesOf(size_t route) const;
  CostCurves Fit(size_t route) const;
  CostCurves::Knots Fitted(const Ladder& ladder) const;
  // For the queries of the busiest thread.
  CostCurves::Knots FittedOfOneThread(const Ladder& ladder) const;
  FanOut FittedFanOut() const;

  const absl::Span<const Route* const> routes_;
  const SortedRun& run_;
  const CalibrationOptions& options_;
  CalibrationTrials trials_;
  std::vector<Ladder> ladders_;
  std::vector<absl::Status> statuses_;  // one per route
};

void Calibrator::AddLadders(size_t i) {
  const Route& route = *routes_[i];
  const bool on_cpu = !route.on_gpu();
  const Parallelism parallelism{on_cpu ? options_.threads : 1};
  // Times of batches with more parts are computed from those of one part and the cost of waking
  // threads.
  const size_t one_part = parallelism.threads > 1 ? parallelism.min_slice : kMaxOnCpu;
  const size_t largest = on_cpu ? one_part : kMaxOnGpu;
  const auto takes = [&](Operation operation) {
    return CalibrationTrials::Takes(route, operation);
  };
  const auto add = [&](Kind kind, size_t first, size_t most) {
    ladders_.push_back({kind, i, first, most, parallelism});
  };
  if (takes(Operation::kFindFirst)) add(Kind::kPoint, 1, largest);
  if (takes(Operation::kFindFirst) && on_cpu) {
    add(Kind::kSortedPoint, 1, kMaxAscending);
    if (SlicesOf(i) == nullptr) {
      const size_t densest = std::bit_ceil(kDensest * run_.size());
      add(Kind::kSlices, kMaxAscending, std::clamp(densest, kMaxAscending, kMaxSliced));
    }
  }
  if (takes(Operation::kFind)) add(Kind::kFind, 1, largest);
  if (takes(Operation::kCount)) add(Kind::kCount, 1, largest);
  if (takes(Operation::kScan)) add(Kind::kRows, kMinRanges, kMaxRanges);
}

const Ladder* Calibrator::Find(size_t route, Kind kind) const {
  for (const Ladder& ladder : ladders_) {
    if (ladder.route == route && ladder.kind == kind) return &ladder;
  }
  return nullptr;
}

// Slices are run on an index, so routes over the same index share them.
const Ladder* Calibrator::SlicesOf(size_t route) const {
  for (const Ladder& ladder : ladders_) {
    if (ladder.kind == Kind::kSlices && &routes_[ladder.route]->index() == &routes_[route]->index())
      return &ladder;
  }
  return nullptr;
}

void Calibrator::TryFanOut() {
  const auto wakes = [](const Route* route) {
    return !route->on_gpu() && route->strategy() == Strategy::kUnbuffered &&
           CalibrationTrials::Takes(*route, Operation::kFindFirst);
  };
  const auto route = std::find_if(routes_.begin(), routes_.end(), wakes);
  const int threads =
      std::min(options_.threads, std::max(kMaxThreadsTried, Topology::Get().hardware_threads()));
  if (route == routes_.end() || threads <= 1) return;
  const Parallelism parallelism{threads};
  const size_t most = 2 * parallelism.min_slice * static_cast<size_t>(threads);
  const auto i = static_cast<size_t>(route - routes_.begin());
  double spent = 0;
  // If queries are so slow that a thread's part of a batch exceeds all budgets, the cost of waking
  // threads is negligible.
  Ladder few{Kind::kPoint, i, kFewQueries, kFewQueries, parallelism};
  const auto trial = trials_.Try(&few, kFewQueries, 1, 0, &spent);
  statuses_[i] = trial.status();
  if (!trial.ok() || trial->ns / kFewQueries * static_cast<double>(2 * parallelism.min_slice) >
                         kMaxBudgets * absl::ToDoubleNanoseconds(options_.cpu_budget)) {
    return;
  }
  Ladder ladder{Kind::kFanOut, i, parallelism.min_slice, most, parallelism};
  while (!ladder.done()) {
    const auto trial =
        trials_.Try(&ladder, ladder.NextSize(kGrowth), Ladder::kMinRepeats, ladder.last_ns, &spent);
    if (!trial.ok()) {
      statuses_[i] = trial.status();
      return;
    }
    ladder.trials.push_back(*trial);
  }
  ladders_.push_back(std::move(ladder));
}

FanOut Calibrator::FittedFanOut() const {
  for (const Ladder& ladder : ladders_) {
    if (ladder.kind == Kind::kFanOut) return FitFanOut(ladder.trials, ladder.parallelism);
  }
  return {};
}

// Always runs the cheapest next trial. So all kinds of trials get as far as the time allows for
// all, and the cheap ones further.
void Calibrator::Climb(bool on_gpu, absl::Duration budget) {
  const double budget_ns = absl::ToDoubleNanoseconds(budget) * kFirstShare;
  const int64_t start = options_.now_ns();
  double spent = 0;
  for (size_t growth = kGrowth; growth > 1;) {
    Ladder* cheapest = nullptr;
    for (Ladder& ladder : ladders_) {
      if (!IsUsed(ladder, on_gpu) || ladder.done()) continue;
      if (cheapest == nullptr || ladder.NextCost(growth) < cheapest->NextCost(growth)) {
        cheapest = &ladder;
      }
    }
    if (cheapest == nullptr) return;
    const double cost = cheapest->NextCost(growth);
    const auto elapsed = static_cast<double>(options_.now_ns() - start);
    if (cost > 0 && elapsed > kMaxBudgets * budget_ns) return;
    if (cost > 0 && spent + cost > budget_ns) {
      growth /= 2;
      continue;
    }
    const auto trial =
        trials_.Try(cheapest, cheapest->NextSize(growth), Ladder::kMinRepeats, cost, &spent);
    if (trial.ok()) {
      cheapest->trials.push_back(*trial);
    } else {
      statuses_[cheapest->route] = trial.status();
    }
  }
}

void Calibrator::Repeat(bool on_gpu, absl::Duration budget) {
  const double max_ns = kMaxBudgets * absl::ToDoubleNanoseconds(budget);
  const int64_t start = options_.now_ns();
  double spent = 0;
  for (Ladder& ladder : ladders_) {
    for (CostTrial& trial : ladder.trials) {
      if (static_cast<double>(options_.now_ns() - start) > max_ns) return;
      if (!IsUsed(ladder, on_gpu)) break;
      const auto again = trials_.Try(&ladder, trial.queries, 1, trial.ns, &spent);
      if (again.ok()) {
        trial.ns = std::min(trial.ns, again->ns);
      } else {
        statuses_[ladder.route] = again.status();
      }
    }
  }
}

CostCurves::Knots Calibrator::Fitted(const Ladder& ladder) const {
  CostCurves::Knots knots = FittedOfOneThread(ladder);
  if (routes_[ladder.route]->on_gpu()) return knots;
  const FanOut fan_out = FittedFanOut();
  for (size_t k = 0; k < knots.size(); ++k) {
    knots[k] = fan_out.Time(size_t{1} << k, knots[k], ladder.parallelism);
  }
  return knots;
}

CostCurves::Knots Calibrator::FittedOfOneThread(const Ladder& ladder) const {
  const bool sorts = routes_[ladder.route]->strategy() == Strategy::kSortBased;
  const bool sorted = ladder.kind == Kind::kSortedPoint;
  const Ladder* const slices = SlicesOf(ladder.route);
  if (slices == nullptr || !(sorts || sorted)) return FitCurve(ladder.trials, ladder.parallelism);
  double sort_cost = 0;
  if (!sorted) {
    const Ladder& points = *Find(ladder.route, Kind::kPoint);
    sort_cost = std::max(SortCost({points.trials, slices->trials, true}, points.parallelism), 0.0);
  }
  return FitCurve(Extend({ladder.trials, slices->trials, !sorted}, sort_cost, ladder.parallelism),
                  ladder.parallelism);
}

// Returns the additional time of a scan's trial over Find's, per additional row. If the scan found
// no additional rows, keys have enough entries for Find's time to be that of its rows.
double RowCost(const CostCurves& curves, const Ladder& rows) {
  const CostTrial& scan = rows.trials.back();
  const auto ranges = static_cast<double>(scan.queries);
  const double find_ns = curves.Time({Operation::kFind, scan.queries});
  const double more = (rows.RowsPerQuery() - curves.rows_per_query) * ranges;
  return more >= 1 ? std::max(scan.ns - find_ns, 0.0) / more
                   : find_ns / ranges / std::max(curves.rows_per_query, 1.0);
}

CostCurves Calibrator::Fit(size_t route) const {
  CostCurves curves;
  if (const Ladder* points = Find(route, Kind::kPoint)) {
    curves.ns[Curve::kPoint] = Fitted(*points);
    curves.ns[Curve::kSortedPoint] = curves.ns[Curve::kPoint];
  }
  if (const Ladder* sorted = Find(route, Kind::kSortedPoint)) {
    curves.ns[Curve::kSortedPoint] = Fitted(*sorted);
  }
  if (const Ladder* counts = Find(route, Kind::kCount)) {
    curves.ns[Curve::kCount] = Fitted(*counts);
  }
  if (const Ladder* find = Find(route, Kind::kFind)) {
    curves.ns[Curve::kFind] = Fitted(*find);
    curves.rows_per_query = find->RowsPerQuery();
  }
  if (const Ladder* rows = Find(route, Kind::kRows)) {
    curves.ns_per_row = RowCost(curves, *rows);
  }
  return curves;
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> Calibrate(
    absl::Span<const Route* const> routes, const SortedRun& run,
    const CalibrationOptions& options) {
  CalibrationOptions with_clock = options;
  if (with_clock.now_ns == nullptr) with_clock.now_ns = Router::SteadyNanoseconds;
  return Guarded("trying routes", [&]() -> absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> {
    return Calibrator(routes, run, with_clock).Run();
  });
}

}  // namespace cairn
