#include "engine/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "engine/query_sample.h"

namespace cairn {
namespace {

using Curve = CostCurves::Curve;

// A trial has so many times the queries of the one before.
constexpr size_t kGrowth = 8;
// The largest trials: beyond these, keys to ask for would cost more than the trials.
constexpr size_t kMostOnCpu = size_t{1} << 18;
constexpr size_t kMostOnGpu = size_t{1} << 21;
// The largest sorted batches, and the part of a larger one that is tried in its place.
constexpr size_t kMostAscending = 4096;
constexpr size_t kLeastSlice = 512;
constexpr size_t kMostSliced = size_t{1} << 24;
// Sorted queries that are closer than this many to an entry share all that they can.
constexpr size_t kDensest = 16;
// Ranges of a trial of rows, at first and at most.
constexpr size_t kLeastRanges = 64;
constexpr size_t kMostRanges = 512;

// A trial is repeated until its times add up to this, within bounds.
constexpr double kTrialNanoseconds = 60e3;
constexpr size_t kLeastRepeats = 2;
constexpr size_t kMostRepeats = 31;
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

  size_t NextSize() const { return trials.empty() ? first : trials.back().queries * kGrowth; }
  // Of that size, the queries that are asked.
  size_t Asked(size_t size) const {
    return kind == Kind::kSlices ? std::min(size, kMostAscending) : size;
  }
  // What the next trial will take; 0 where nothing is known.
  double NextCost() const {
    if (trials.empty()) return 0;
    const double growth = QueriesOfOneThread(Asked(NextSize()), parallelism) /
                          QueriesOfOneThread(Asked(trials.back().queries), parallelism);
    return std::max(last_ns * growth * kLeastRepeats, kTrialNanoseconds);
  }
  const CostTrial* Find(size_t size) const {
    for (const CostTrial& trial : trials) {
      if (trial.queries == size) return &trial;
    }
    return nullptr;
  }
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

bool IsSliced(const Route& route) {
  return !route.on_gpu() && route.strategy() != Strategy::kBuffered;
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
    Climb(/*on_gpu=*/false, options_.cpu_budget);
    Climb(/*on_gpu=*/true, options_.gpu_budget);
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
  void Climb(bool on_gpu, absl::Duration budget);
  // Makes the ladder's next trial; returns what it typically takes with its repeats.
  absl::StatusOr<double> Step(Ladder* ladder);
  absl::StatusOr<double> Time(Ladder* ladder, size_t size);
  absl::Status Ask(const Route& route, Kind kind, KeyBatch keys, const RangeBatch& ranges);

  const Ladder* Find(size_t route, Kind kind) const;
  const Ladder* SlicesOf(size_t route) const;
  CostCurves Fit(size_t route) const;
  std::vector<CostTrial> Extended(size_t route, const Ladder& ladder) const;

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
  const size_t most = route.on_gpu() ? kMostOnGpu : kMostOnCpu;
  const bool parallel = !route.on_gpu() && route.strategy() == Strategy::kUnbuffered;
  const Parallelism parallelism{parallel ? options_.threads : 1};
  const auto add = [&](Kind kind, size_t first, size_t largest) {
    ladders_.push_back({kind, i, first, largest, parallelism});
  };
  if (Takes(route, Operation::kFindFirst)) {
    add(Kind::kPoint, 1, most);
    if (IsSliced(route)) {
      add(Kind::kSortedPoint, 1, kMostAscending);
      if (SlicesOf(i) == nullptr) {
        add(Kind::kSlices, kLeastSlice,
            std::clamp(kDensest * run_.size(), kMostAscending, kMostSliced));
      }
    }
  }
  if (Takes(route, Operation::kFind)) {
    add(Kind::kFind, 1, kMostOnCpu);
    add(Kind::kRows, kLeastRanges, kMostRanges);
  }
  if (Takes(route, Operation::kCount)) add(Kind::kCount, 1, kMostOnCpu);
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

// Always makes the trial that takes the least, so that all kinds of trials come as far as there is
// time for all, and the cheap ones further.
void Calibrator::Climb(bool on_gpu, absl::Duration budget) {
  const double budget_ns = absl::ToDoubleNanoseconds(budget);
  const int64_t start = options_.now_ns();
  double spent = 0;
  for (;;) {
    Ladder* cheapest = nullptr;
    for (Ladder& ladder : ladders_) {
      if (routes_[ladder.route]->on_gpu() != on_gpu || !statuses_[ladder.route].ok()) continue;
      if (ladder.NextSize() > ladder.most) continue;
      if (cheapest == nullptr || ladder.NextCost() < cheapest->NextCost()) cheapest = &ladder;
    }
    if (cheapest == nullptr) return;
    const double cost = cheapest->NextCost();
    const auto elapsed = static_cast<double>(options_.now_ns() - start);
    if (cost > 0 && (spent + cost > budget_ns || elapsed > kMostBudgets * budget_ns)) return;
    const absl::StatusOr<double> took = Step(cheapest);
    if (took.ok()) {
      spent += *took;
    } else {
      statuses_[cheapest->route] = took.status();
    }
  }
}

absl::StatusOr<double> Calibrator::Step(Ladder* ladder) {
  const size_t size = ladder->NextSize();
  if (ladder->trials.empty()) {  // what is called for the first time allocates
    if (absl::Status s = Time(ladder, size).status(); !s.ok()) return s;
  }
  std::vector<double> times;
  for (double sum = 0;
       times.size() < kLeastRepeats || (sum < kTrialNanoseconds && times.size() < kMostRepeats);) {
    const absl::StatusOr<double> time = Time(ladder, size);
    if (!time.ok()) return time;
    times.push_back(*time);
    sum += *time;
  }
  // The lower of two medians: what disturbs a trial makes it longer.
  const auto median = times.begin() + static_cast<ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), median, times.end());
  ladder->last_ns = *median;
  const double whole = static_cast<double>(size) / static_cast<double>(ladder->Asked(size));
  ladder->trials.push_back({size, *median * whole});
  return *median * static_cast<double>(times.size());
}

// The nanoseconds that a batch of the ladder's kind takes.
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
  QueryOptions options;
  const absl::Span<RowId> row_ids = absl::MakeSpan(row_ids_).first(keys.size());
  switch (kind) {
    case Kind::kPoint:
    case Kind::kSortedPoint:
      options.sorted_input = kind == Kind::kSortedPoint;
      options.result_order = OrderOf(route);
      if (options.result_order == ResultOrder::kKey) {
        options.query_of = absl::MakeSpan(query_of_).first(keys.size());
      }
      return route.FindFirst(keys, options, row_ids);
    case Kind::kSlices:
      return route.index().FindFirst(keys, row_ids);
    case Kind::kFind:
      return route.Find(keys, options, &matches_);
    case Kind::kCount:
      return route.Count(ranges, absl::MakeSpan(counts_).first(ranges.size()));
    case Kind::kRows:
      break;
  }
  return route.Scan(ranges, options, &matches_);
}

// A ladder's trials, and behind them those of larger batches whose queries are searched for in key
// order. What a query costs there falls as the batch grows, since neighbours share what they read;
// slices tell it. What a query of the last trial took beyond one of its slice is the rest of the
// strategy: sorting, which grows with the batch's logarithm.
std::vector<CostTrial> Calibrator::Extended(size_t route, const Ladder& ladder) const {
  std::vector<CostTrial> trials = ladder.trials;
  const CostTrial last = trials.back();
  const Ladder* const slices = SlicesOf(route);
  const CostTrial* const same = slices != nullptr ? slices->Find(last.queries) : nullptr;
  if (same == nullptr) return trials;
  const auto last_size = static_cast<double>(last.queries);
  const double rest = (last.ns - same->ns) / last_size;
  for (const CostTrial& slice : slices->trials) {
    if (slice.queries <= last.queries) continue;
    const auto size = static_cast<double>(slice.queries);
    const double growth = routes_[route]->strategy() == Strategy::kSortBased
                              ? std::log2(size) / std::log2(last_size)
                              : 1;
    const double query = std::max(slice.ns / size + rest * growth, slice.ns / size / 2);
    trials.push_back(
        {slice.queries, QueriesOfOneThread(slice.queries, ladder.parallelism) * query});
  }
  return trials;
}

CostCurves Calibrator::Fit(size_t route) const {
  CostCurves curves;
  const bool sort_based = routes_[route]->strategy() == Strategy::kSortBased;
  if (const Ladder* points = Find(route, Kind::kPoint)) {
    curves.ns[Curve::kPoint] = FitCurve(
        sort_based && IsSliced(*routes_[route]) ? Extended(route, *points) : points->trials,
        points->parallelism);
    curves.ns[Curve::kSortedPoint] = curves.ns[Curve::kPoint];
  }
  if (const Ladder* sorted = Find(route, Kind::kSortedPoint)) {
    curves.ns[Curve::kSortedPoint] = FitCurve(Extended(route, *sorted), sorted->parallelism);
  }
  if (const Ladder* counts = Find(route, Kind::kCount)) {
    curves.ns[Curve::kCount] = FitCurve(counts->trials, counts->parallelism);
  }
  const Ladder* const find = Find(route, Kind::kFind);
  if (find == nullptr) return curves;
  curves.ns[Curve::kFind] = FitCurve(find->trials, find->parallelism);
  curves.rows_per_query = static_cast<double>(find->rows) / static_cast<double>(find->queries);
  const Ladder& rows = *Find(route, Kind::kRows);
  const CostTrial& scan = rows.trials.back();
  const double scanned = static_cast<double>(rows.rows) / static_cast<double>(rows.queries);
  // More than Find finds.
  const double more = (scanned - curves.rows_per_query) * static_cast<double>(scan.queries);
  const double find_ns = curves.Time({Operation::kFind, scan.queries});
  if (more >= 1) {
    curves.ns_per_row = std::max(scan.ns - find_ns, 0.0) / more;
  } else {  // so many entries have one key that Find's time is that of its rows
    curves.ns_per_row =
        find_ns / static_cast<double>(scan.queries) / std::max(curves.rows_per_query, 1.0);
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
  try {
    return Calibrator(routes, run, with_clock).Run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for trials of routes");
  }
}

}  // namespace cairn
