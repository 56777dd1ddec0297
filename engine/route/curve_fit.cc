#include "engine/route/curve_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace cairn {
namespace {

// Minimum marginal cost of a query after the last trial, as a share of the mean. Disturbed trials
// may show no growth at all, but work always has a cost.
constexpr double kMinMarginal = 1.0 / 16;

// A trial, in coordinates in which its curve is linear.
struct Point {
  double queries;  // of the busiest thread
  double ns;
};

double OnLine(const Point& a, const Point& b, double queries) {
  return a.ns + (b.ns - a.ns) * (queries - a.queries) / (b.queries - a.queries);
}

// Returns whether slices show the search time of the largest trial.
bool AreSliced(const SortedTrials& sorted) {
  return !sorted.slices.empty() && !sorted.trials.empty() &&
         sorted.trials.back().queries >= sorted.slices.front().queries;
}

// The search cost of a sorted query in a batch of any size.
class Searches {
 public:
  Searches(const SortedTrials& sorted, const Parallelism& parallelism)
      : times_(FitCurve(sorted.slices, Parallelism{1})),
        parallelism_(parallelism),
        by_thread_(sorted.by_thread) {}

  double Cost(size_t batch) const {
    const double dense_as =
        by_thread_ ? QueriesOfOneThread(batch, parallelism_) : static_cast<double>(batch);
    return CostCurves::At(times_, dense_as) / dense_as;
  }

 private:
  const CostCurves::Knots times_;
  const Parallelism& parallelism_;
  const bool by_thread_;
};

}  // namespace

double QueriesOfOneThread(size_t queries, const Parallelism& parallelism) {
  return static_cast<double>(queries) / static_cast<double>(SliceCount(queries, parallelism));
}

double FanOut::Time(size_t queries, double part_ns, const Parallelism& parallelism) const {
  const size_t parts = SliceCount(queries, parallelism);
  if (parts <= 1) return part_ns;
  const double others = static_cast<double>(parts - 1) / static_cast<double>(max_parts - 1);
  const double more =
      max_parts == 2 ? 0 : static_cast<double>(parts - 2) / static_cast<double>(max_parts - 2);
  return two_ns + (max_ns - two_ns) * more + (1 + (slowdown - 1) * others) * part_ns;
}

FanOut FitFanOut(absl::Span<const CostTrial> trials, const Parallelism& parallelism) {
  if (trials.size() < 3) return {};
  FanOut fan_out;
  const double part_ns = trials.front().ns;
  const CostTrial& all = trials[trials.size() - 2];
  fan_out.max_parts = SliceCount(all.queries, parallelism);
  fan_out.slowdown = std::clamp((trials.back().ns - all.ns) / part_ns, 1.0,
                                static_cast<double>(fan_out.max_parts));
  // The time beyond the work was spent on waking threads.
  const auto beyond_work = [&](const CostTrial& trial) {
    return std::max(trial.ns - fan_out.Time(trial.queries, part_ns, parallelism), 0.0);
  };
  const double two_ns = beyond_work(trials[1]), max_ns = beyond_work(all);
  fan_out.two_ns = two_ns;
  fan_out.max_ns = max_ns;
  return fan_out;
}

CostCurves::Knots FitCurve(absl::Span<const CostTrial> trials, const Parallelism& parallelism) {
  std::vector<std::pair<size_t, Point>> points;  // with the base-2 logarithm of the trial's queries
  for (const CostTrial& trial : trials) {
    const size_t k = std::bit_width(trial.queries) - 1;
    points.push_back({k, {QueriesOfOneThread(trial.queries, parallelism), trial.ns}});
  }
  for (size_t i = points.size(); i-- > 1;) {
    points[i - 1].second.ns = std::min(points[i - 1].second.ns, points[i].second.ns);
  }
  const Point last = points.back().second;
  double marginal = last.ns / last.queries * (points.size() == 1 ? 1 : kMinMarginal);
  for (size_t i = points.size(); i-- > 0;) {
    const Point& before = points[i].second;
    if (before.queries == last.queries) continue;
    marginal = std::max(marginal, (last.ns - before.ns) / (last.queries - before.queries));
    break;
  }

  CostCurves::Knots knots;
  for (size_t k = 0, next = 0; k < knots.size(); ++k) {
    while (next < points.size() && points[next].first < k) ++next;
    const double queries = QueriesOfOneThread(size_t{1} << k, parallelism);
    if (next == points.size()) {
      knots[k] = last.ns + marginal * (queries - last.queries);
    } else if (points[next].first == k) {
      knots[k] = points[next].second.ns;
    } else if (next == 0) {
      knots[k] = points[0].second.ns * queries / points[0].second.queries;
    } else {
      const Point& a = points[next - 1].second;
      const Point& b = points[next].second;
      knots[k] = queries >= b.queries ? b.ns : OnLine(a, b, queries);
    }
  }
  return knots;
}

double SortCost(const SortedTrials& sorted, const Parallelism& parallelism) {
  if (!AreSliced(sorted)) return 0;
  const CostTrial& trial = sorted.trials.back();
  return trial.ns / QueriesOfOneThread(trial.queries, parallelism) -
         Searches(sorted, parallelism).Cost(trial.queries);
}

std::vector<CostTrial> Extend(const SortedTrials& sorted, double sort_cost,
                              const Parallelism& parallelism) {
  std::vector<CostTrial> trials(sorted.trials.begin(), sorted.trials.end());
  if (!AreSliced(sorted)) return trials;
  const double beyond_search = SortCost(sorted, parallelism);
  const Searches searches(sorted, parallelism);
  const size_t tried = trials.back().queries;
  const double tried_log = std::log2(QueriesOfOneThread(tried, parallelism));
  for (const CostTrial& slice : sorted.slices) {
    if (slice.queries <= tried) continue;
    const double of_thread = QueriesOfOneThread(slice.queries, parallelism);
    const double search = searches.Cost(slice.queries);
    const double query =
        search + beyond_search + sort_cost * (std::log2(of_thread) / tried_log - 1);
    // Disturbed trials may show a negative time beyond the search.
    trials.push_back({slice.queries, of_thread * std::max(query, search / 2)});
  }
  return trials;
}

}  // namespace cairn
