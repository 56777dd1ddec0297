#include "engine/route/calibration.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "engine/route/curve_fit.h"
#include "engine/route/query_sample.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Curve = CostCurves::Curve;

// A trial has so many times the queries of the one before, or fewer, if those fit into the budget.
constexpr size_t kGrowth = 8;
// The largest trials: beyond these, keys to ask for would cost more than the trials.
constexpr size_t kMostOnCpu = size_t{1} << 18;
constexpr size_t kMostOnGpu = size_t{1} << 20;
// The largest sorted batches, the part of a larger one that is tried in its place, and the batches
// for which that is done.
constexpr size_t kMostAscending = 512;
constexpr size_t kSlice = 512;
constexpr size_t kSlicedGrowth = 4;
constexpr size_t kMostSliced = size_t{1} << 24;
// Sorted queries that are closer than this many to an entry share all that they can.
constexpr size_t kDensest = 16;
// Ranges of a trial of rows, at first and at most.
constexpr size_t kLeastRanges = 64;
constexpr size_t kMostRanges = 512;

// A trial is of batches of one size until they have taken this long together, at most so many, and
// two at least: the first after other batches finds scratch memory cold, or has to make it.
constexpr double kTrialNanoseconds = 30e3;
constexpr size_t kLeastRepeats = 2;
constexpr size_t kMostRepeats = 15;
// At another time all trials are made again, with one batch at least, and the shorter time counts:
// most of what disturbs them lasts for some milliseconds. So the first trials have this share of
// the budget.
constexpr double kFirstShare = 2.0 / 3;
// A batch that takes so many times what it was expected to is asked again, so often at most.
constexpr double kDoubtful = 2;
constexpr size_t kMostDoubts = 3;
// Trials end when disturbances have stretched them beyond so many budgets.
constexpr double kMostBudgets = 8;

// Trials of one kind on one route, of growing batches.
struct Ladder {
  enum class Kind : uint8_t {
    kPoint,
    kSortedPoint,
    kFind,
    kCount,
    kRows,    // Scan of ranges with more rows than Find finds
    kSlices,  // slices of large sorted batches, put to the route's index; times are of whole
              // batches
    kFanOut,  // kPoint's on one thread, on two, on all, and on all with twice the queries
  };

  Kind kind;
  size_t route;  // its place among the routes
  size_t first;  // queries of the first trial
  size_t most;   // queries of the largest
  Parallelism parallelism;
  std::vector<CostTrial> trials = {};
  double last_ns = 0;  // that the last trial took
  size_t queries = 0;  // of all trials and repeats, and rows that they found
  size_t rows = 0;

  size_t NextSize(size_t growth) const {
    if (kind == Kind::kSlices) growth = std::min(growth, kSlicedGrowth);
    if (kind == Kind::kFanOut) growth = trials.size() == 2 ? most / 2 / trials.back().queries : 2;
    return trials.empty() ? first : std::min(trials.back().queries * growth, most);
  }
  bool done() const { return !trials.empty() && trials.back().queries >= most; }
  // Of that size, the queries that are asked.
  size_t Asked(size_t size) const { return kind == Kind::kSlices ? std::min(size, kSlice) : size; }
  // What the next trial will take; 0 where nothing is known.
  double NextCost(size_t growth) const {
    if (trials.empty()) return 0;
    const double more = QueriesOfOneThread(Asked(NextSize(growth)), parallelism) /
                        QueriesOfOneThread(Asked(trials.back().queries), parallelism);
    return std::max(last_ns * more * kLeastRepeats, kTrialNanoseconds);
  }
  double RowsPerQuery() const { return static_cast<double>(rows) / static_cast<double>(queries); }
};

using Kind = Ladder::Kind;

// The order of results that a route gives.
ResultOrder OrderOf(const Route& route) {
  return route.Takes(Operation::kFindFirst, ResultOrder::kCaller) ? ResultOrder::kCaller
                                                                  : ResultOrder::kKey;
}
bool Takes(const Route& route, Operation operation) {
  return route.Takes(operation, OrderOf(route));
}

class Calibrator {
 public:
  Calibrator(absl::Span<const Route* const> routes, const SortedRun& run,
             const CalibrationOptions& options)
      : routes_(routes),
        run_(run),
        options_(options),
        sample_(run, options.now_ns),
        statuses_(routes.size()) {
    clock_ns_ = std::numeric_limits<double>::max();
    for (int i = 0; i < 16; ++i) {
      const int64_t start = options_.now_ns();
      clock_ns_ = std::min(clock_ns_, static_cast<double>(options_.now_ns() - start));
    }
  }

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
  // Adds trials of what spreading a batch over threads does to its time, which all routes of the
  // CPU have in common, and makes them.
  void TryFanOut();
  void Climb(bool on_gpu, absl::Duration budget);
  // Makes all trials again. Stops early where that takes very long.
  void Repeat(bool on_gpu, absl::Duration budget);
  // Makes a trial of at least so many batches of that size, of which one is expected to take at
  // most so many nanoseconds. To *spent is added what the repeats typically take.
  absl::StatusOr<CostTrial> Try(Ladder* ladder, size_t size, size_t least, double expected,
                                double* spent);
  // The nanoseconds that one batch takes.
  absl::StatusOr<double> Time(Ladder* ladder, size_t size);
  absl::Status Ask(const Route& route, Kind kind, KeyBatch keys, const RangeBatch& ranges);

  // Whether the ladder is of a route of that device which has not failed.
  bool IsUsed(const Ladder& ladder, bool on_gpu) const {
    return routes_[ladder.route]->on_gpu() == on_gpu && statuses_[ladder.route].ok();
  }
  const Ladder* Find(size_t route, Kind kind) const;
  const Ladder* SlicesOf(size_t route) const;
  CostCurves Fit(size_t route) const;
  CostCurves::Knots Fitted(const Ladder& ladder) const;
  // Of what the busiest thread does.
  CostCurves::Knots FittedOfOneThread(const Ladder& ladder) const;
  FanOut FittedFanOut() const;

  const absl::Span<const Route* const> routes_;
  const SortedRun& run_;
  const CalibrationOptions& options_;
  QuerySample sample_;
  double clock_ns_;  // that reading the clock takes
  std::vector<Ladder> ladders_;
  std::vector<absl::Status> statuses_;  // one a route

  // Results of trials.
  std::vector<RowId> row_ids_;
  std::vector<uint32_t> query_of_;
  std::vector<uint64_t> counts_;
  Matches matches_;
};

void Calibrator::AddLadders(size_t i) {
  const Route& route = *routes_[i];
  const bool on_cpu = !route.on_gpu();
  const Parallelism parallelism{on_cpu ? options_.threads : 1};
  // Batches of more than one part are told from those of one and what waking threads takes.
  const size_t one_part = parallelism.threads > 1 ? parallelism.min_slice : kMostOnCpu;
  const size_t largest = on_cpu ? one_part : kMostOnGpu;
  const auto add = [&](Kind kind, size_t first, size_t most) {
    ladders_.push_back({kind, i, first, most, parallelism});
  };
  if (Takes(route, Operation::kFindFirst)) add(Kind::kPoint, 1, largest);
  if (Takes(route, Operation::kFindFirst) && on_cpu) {
    add(Kind::kSortedPoint, 1, kMostAscending);
    if (SlicesOf(i) == nullptr) {
      const size_t densest = std::bit_ceil(kDensest * run_.size());
      add(Kind::kSlices, kMostAscending, std::clamp(densest, kMostAscending, kMostSliced));
    }
  }
  if (Takes(route, Operation::kFind)) add(Kind::kFind, 1, largest);
  if (Takes(route, Operation::kCount)) add(Kind::kCount, 1, largest);
  if (Takes(route, Operation::kScan)) add(Kind::kRows, kLeastRanges, kMostRanges);
}

const Ladder* Calibrator::Find(size_t route, Kind kind) const {
  for (const Ladder& ladder : ladders_) {
    if (ladder.route == route && ladder.kind == kind) return &ladder;
  }
  return nullptr;
}

// Slices are put to an index, so that routes over the same one share them.
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
           Takes(*route, Operation::kFindFirst);
  };
  const auto route = std::find_if(routes_.begin(), routes_.end(), wakes);
  if (route == routes_.end() || options_.threads <= 1) return;
  const Parallelism parallelism{options_.threads};
  const size_t most = 2 * parallelism.min_slice * static_cast<size_t>(options_.threads);
  const auto i = static_cast<size_t>(route - routes_.begin());
  Ladder ladder{Kind::kFanOut, i, parallelism.min_slice, most, parallelism};
  double spent = 0;
  while (!ladder.done()) {
    const auto trial =
        Try(&ladder, ladder.NextSize(kGrowth), kLeastRepeats, ladder.last_ns, &spent);
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

// Always makes the trial that takes the least, so that all kinds of trials come as far as there is
// time for all, and the cheap ones further.
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
    if (cost > 0 && elapsed > kMostBudgets * budget_ns) return;
    if (cost > 0 && spent + cost > budget_ns) {
      growth /= 2;
      continue;
    }
    const auto trial = Try(cheapest, cheapest->NextSize(growth), kLeastRepeats, cost, &spent);
    if (trial.ok()) {
      cheapest->trials.push_back(*trial);
    } else {
      statuses_[cheapest->route] = trial.status();
    }
  }
}

void Calibrator::Repeat(bool on_gpu, absl::Duration budget) {
  const double most_ns = kMostBudgets * absl::ToDoubleNanoseconds(budget);
  const int64_t start = options_.now_ns();
  double spent = 0;
  for (Ladder& ladder : ladders_) {
    for (CostTrial& trial : ladder.trials) {
      if (static_cast<double>(options_.now_ns() - start) > most_ns) return;
      if (!IsUsed(ladder, on_gpu)) break;
      const auto again = Try(&ladder, trial.queries, 1, trial.ns, &spent);
      if (again.ok()) {
        trial.ns = std::min(trial.ns, again->ns);
      } else {
        statuses_[ladder.route] = again.status();
      }
    }
  }
}

absl::StatusOr<CostTrial> Calibrator::Try(Ladder* ladder, size_t size, size_t least,
                                          double expected, double* spent) {
  if (ladder->trials.empty()) {  // what is called for the first time allocates
    RETURN_IF_ERROR(Time(ladder, size).status());
  }
  const double most = kDoubtful * std::max(expected, kTrialNanoseconds);
  std::vector<double> times;
  double sum = 0, shortest = std::numeric_limits<double>::max();
  do {
    ASSIGN_OR_RETURN(const double time, Time(ladder, size));
    times.push_back(time);
    sum += time;
    shortest = std::min(shortest, time);
  } while (times.size() < least || (sum < kTrialNanoseconds && times.size() < kMostRepeats) ||
           (shortest > most && times.size() < kMostDoubts));
  const auto median = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), median, times.end());
  *spent += *median * static_cast<double>(times.size());
  ladder->last_ns = *median;
  const double whole = static_cast<double>(size) / static_cast<double>(ladder->Asked(size));
  return CostTrial{size, *median * whole};
}

absl::StatusOr<double> Calibrator::Time(Ladder* ladder, size_t size) {
  const size_t count = ladder->Asked(size);
  KeyBatch keys;
  RangeBatch ranges;
  if (ladder->kind == Kind::kSlices || ladder->kind == Kind::kSortedPoint) {
    keys = sample_.NextAscending(count, size);
  } else if (ladder->kind == Kind::kCount || ladder->kind == Kind::kRows) {
    ranges = sample_.NextRanges(count);
  } else {
    keys = sample_.Next(count);
  }
  row_ids_.resize(std::max(row_ids_.size(), count));
  query_of_.resize(std::max(query_of_.size(), count));
  counts_.resize(std::max(counts_.size(), ladder->kind == Kind::kCount ? count : 0));

  const int64_t start = options_.now_ns();
  absl::Status status = Ask(*routes_[ladder->route], ladder->kind, keys, ranges);
  const auto ns = static_cast<double>(options_.now_ns() - start);
  if (!status.ok()) return status;
  if (ladder->kind == Kind::kFind || ladder->kind == Kind::kRows) {
    ladder->queries += count;
    ladder->rows += matches_.row_ids.size();
  }
  return std::max(ns - clock_ns_, 1.0);
}

absl::Status Calibrator::Ask(const Route& route, Kind kind, KeyBatch keys,
                             const RangeBatch& ranges) {
  const absl::Span<RowId> row_ids = absl::MakeSpan(row_ids_).first(keys.size());
  switch (kind) {
    case Kind::kPoint:
    case Kind::kSortedPoint:
    case Kind::kFanOut: {
      Batch batch = Batch::FindFirst(keys, row_ids);
      batch.options.sorted_input = kind == Kind::kSortedPoint;
      batch.options.result_order = OrderOf(route);
      if (batch.options.result_order == ResultOrder::kKey) {
        batch.query_of = absl::MakeSpan(query_of_).first(keys.size());
      }
      return route.Answer(batch);
    }
    case Kind::kSlices:
      return route.index().Answer(Batch::FindFirst(keys, row_ids));
    case Kind::kFind:
      return route.Answer(Batch::Find(keys, &matches_));
    case Kind::kCount:
      return route.Answer(Batch::Count(ranges, absl::MakeSpan(counts_).first(ranges.size())));
    case Kind::kRows:
      break;
  }
  return route.Answer(Batch::Scan(ranges, &matches_));
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

// What a scan's trial took beyond Find's, by the rows that it found beyond. Where that is no more,
// so many entries have one key that Find's time is that of its rows.
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

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> Calibrate(
    absl::Span<const Route* const> routes, const SortedRun& run,
    const CalibrationOptions& options) {
  CalibrationOptions with_clock = options;
  if (with_clock.now_ns == nullptr) with_clock.now_ns = SteadyNanoseconds;
  return Guarded("trying routes", [&]() -> absl::StatusOr<std::vector<absl::StatusOr<CostCurves>>> {
    return Calibrator(routes, run, with_clock).Run();
  });
}

}  // namespace cairn
