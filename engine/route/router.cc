#include "engine/route/router.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kForGood = std::numeric_limits<int64_t>::max();
// How long a GPU that ran out of memory is not used: the first and the longest pause.
constexpr int64_t kFirstPause = 100'000'000;
constexpr int64_t kLongestPause = 60'000'000'000;
// A batch is large enough if a larger one would gain at most 10%.
constexpr double kShareOfBest = 0.9;
constexpr size_t kLargestBatch = size_t{1} << 24;
// Smaller batches in the caller's order use only unbuffered routes: their queries rarely share
// cache lines, so partitioning or sorting gains nothing. Trials also cannot measure differences of
// nanoseconds reliably.
constexpr size_t kMinGathered = 64;
// For smaller batches, one in kTimedOneIn is timed. Reading a clock makes the processor wait for
// all instructions in flight, which takes longer than the rest of the routing (Routing/…/batch:1).
constexpr size_t kMinTimed = 64;
constexpr uint32_t kTimedOneIn = 16;
// After a batch that took at least this many nanoseconds, the router checks whether its route needs
// new trials.
constexpr int64_t kWorthALook = 10'000;

// Returns whether a batch failed because of the device, not because of the request.
bool IsDeviceFailure(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsInternal(status);
}

absl::Duration Nanoseconds(double nanoseconds) {
  return nanoseconds == kNever ? absl::InfiniteDuration() : absl::Nanoseconds(nanoseconds);
}

bool IsTimed() {
  static_assert(kTimedOneIn == 16);
  thread_local uint32_t count = 0;
  return ++count % kTimedOneIn == 0;
}

uint64_t BytesOf(const KeyBatch& keys) {
  if (keys.kind() == PhysicalType::kU32) return keys.size() * sizeof(uint32_t);
  if (keys.kind() == PhysicalType::kU64) return keys.size() * sizeof(uint64_t);
  uint64_t bytes = 0;
  for (std::string_view key : keys.bytes()) bytes += key.size();
  return bytes;
}

// Returns the bytes of a batch's keys and answers.
uint64_t BytesOf(const Batch& batch) {
  uint64_t bytes = BytesOf(batch.keys) + BytesOf(batch.ranges.lower) + BytesOf(batch.ranges.upper) +
                   batch.values.size() * sizeof(uint32_t) +
                   batch.rows.size() * sizeof(GlobalRowId) + batch.ends.size() * sizeof(Position) +
                   batch.found.size() * sizeof(bool) + batch.counts.size() * sizeof(uint64_t);
  if (batch.gives_matches()) {
    bytes += batch.matches->offsets.size() * sizeof(uint64_t) +
             batch.matches->row_ids.size() * sizeof(RowId);
  }
  return bytes;
}

std::string NameAndError(const Route& route, const absl::Status& status) {
  return absl::StrFormat("%s: %s", route.name(), status.ToString());
}

}  // namespace

int64_t Router::SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Router::Router(std::vector<Route> routes, Clock clock)
    : routes_(std::move(routes)),
      clock_(std::move(clock)),
      counters_(std::make_unique<RouteCounters[]>(routes_.size())) {
  all_costs_.push_back(std::make_unique<const Costs>(routes_.size()));
  costs_ = all_costs_.back().get();
}

void Router::SetCosts(Costs costs) {
  const MutexLock lock(&mutex_);
  all_costs_.push_back(std::make_unique<const Costs>(std::move(costs)));
  costs_.store(all_costs_.back().get(), std::memory_order_release);
  trials_.fetch_add(1, std::memory_order_relaxed);
  trials_are_due_.store(false, std::memory_order_relaxed);
}

double Router::Predict(size_t route, const BatchShape& shape) const {
  const CostModel* const costs = this->costs()[route].get();
  return costs == nullptr ? kNever : costs->Predict(shape);
}

void Router::Observe(size_t route, const BatchShape& shape, int64_t nanoseconds) const {
  CostModel* const costs = this->costs()[route].get();
  if (costs == nullptr) return;
  costs->Observe(shape, static_cast<double>(nanoseconds));
  if (nanoseconds >= kWorthALook &&
      costs->CallsForTrials(trials_.load(std::memory_order_relaxed))) {
    trials_are_due_.store(true, std::memory_order_relaxed);
  }
}

size_t Router::Best(const BatchShape& shape, ResultOrder order, uint64_t tried, bool cpu) const {
  size_t best = kNoRoute;
  double best_time = 0;
  for (size_t i = 0; i < routes_.size(); ++i) {
    if ((tried >> i & 1) != 0 || (cpu && routes_[i].on_gpu())) continue;
    if (!routes_[i].Takes(shape.operation, order)) continue;
    if (shape.queries < kMinGathered && order == ResultOrder::kCaller &&
        routes_[i].strategy() != Strategy::kUnbuffered) {
      continue;
    }
    const double time = Predict(i, shape);
    if (best == kNoRoute || time < best_time) {
      best = i;
      best_time = time;
    }
  }
  return best;
}

absl::StatusOr<size_t> Router::Named(const Batch& batch) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    if (!route.Takes(batch.operation, batch.options.result_order)) continue;
    if (route.name() == batch.options.route) return i;
    names.push_back(route.name());
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("no route '%s' for %s in this order of results; expected one of %s",
                      std::string(batch.options.route), std::string(OperationName(batch.operation)),
                      absl::StrJoin(names, ", ")));
}

void Router::LeaveGpuAlone(const absl::Status& status, int64_t now) const {
  if (!absl::IsResourceExhausted(status)) {
    gpu_out_until_.store(kForGood, std::memory_order_relaxed);
    return;
  }
  const int64_t pause =
      std::clamp(gpu_out_for_.load(std::memory_order_relaxed) * 2, kFirstPause, kLongestPause);
  gpu_out_for_.store(pause, std::memory_order_relaxed);
  gpu_out_until_.store(now + pause, std::memory_order_relaxed);
}

absl::StatusOr<size_t> Router::Choose(const Batch& batch, const BatchShape& shape,
                                      bool gpu_is_out) const {
  if (!batch.options.route.empty()) {
    const absl::StatusOr<size_t> named = Named(batch);
    if (!named.ok() || !gpu_is_out || !routes_[*named].on_gpu()) return named;
  }
  const size_t best = Best(shape, batch.options.result_order, 0, gpu_is_out);
  if (best != kNoRoute) return best;
  return absl::InvalidArgumentError(
      absl::StrFormat("results of %s are available only in the caller's order",
                      std::string(OperationName(batch.operation))));
}

absl::Status Router::Execute(const Batch& batch, double rows) const {
  const BatchShape shape{batch.operation, batch.size(), rows, batch.options.sorted_input};
  Explain* const explain = batch.explain;
  const bool always_timed = shape.queries >= kMinTimed || explain != nullptr;
  const bool timed = always_timed || IsTimed();
  const int64_t start = timed || GpuHasFailed() ? clock_() : 0;
  const bool gpu_is_out = GpuIsOut(start);
  ASSIGN_OR_RETURN(const size_t first, Choose(batch, shape, gpu_is_out));
  if (explain != nullptr) FillExplain(batch, shape, first, gpu_is_out);

  uint64_t tried = 0;
  int64_t begin = start;
  for (size_t chosen = first;;) {
    const Route& route = routes_[chosen];
    absl::Status status = route.Execute(batch);
    if (status.ok()) {
      counters_[chosen].CountBatch(shape.queries, BytesOf(batch));
      if (!timed) return status;
      const int64_t end = clock_();
      counters_[chosen].CountTime(end - start, always_timed ? 1 : kTimedOneIn);
      Observe(chosen, shape, end - begin);
      if (route.on_gpu()) gpu_out_for_.store(0, std::memory_order_relaxed);
      if (explain != nullptr) {
        explain->route = route.name();
        explain->index = route.index().description();
        explain->measured = absl::Nanoseconds(end - start);
      }
      return status;
    }
    if (!route.on_gpu() || !IsDeviceFailure(status)) return status;
    counters_[chosen].CountFailure();
    begin = clock_();
    LeaveGpuAlone(status, begin);
    if (explain != nullptr) {
      explain->failures.push_back(NameAndError(route, status));
      explain->reason = "the GPU failed";
    }
    tried |= uint64_t{1} << chosen;
    chosen = Best(shape, batch.options.result_order, tried, /*cpu=*/true);
    if (chosen == kNoRoute) return status;
  }
}

void Router::FillExplain(const Batch& batch, const BatchShape& shape, size_t chosen,
                         bool gpu_is_out) const {
  const QueryOptions& options = batch.options;
  Explain& explain = *batch.explain;
  explain = Explain();
  explain.operation = shape.operation;
  explain.queries = shape.queries;
  explain.expected_rows = shape.rows;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    Explain::Candidate candidate{route.name(), absl::InfiniteDuration(), ""};
    if (!route.Takes(shape.operation, options.result_order)) {
      candidate.note = "does not take such a batch";
    } else if (costs()[i] == nullptr) {
      candidate.note = "has no cost model";
    } else {
      candidate.predicted = Nanoseconds(Predict(i, shape));
      if (route.on_gpu() && gpu_is_out) candidate.note = "the GPU failed earlier";
    }
    explain.candidates.push_back(std::move(candidate));
  }
  std::stable_sort(explain.candidates.begin(), explain.candidates.end(),
                   [](const auto& a, const auto& b) { return a.predicted < b.predicted; });
  explain.predicted = Nanoseconds(Predict(chosen, shape));
  explain.route = routes_[chosen].name();
  explain.index = routes_[chosen].index().description();
  if (explain.route == options.route) {
    explain.reason = "the query options select it";
  } else if (!options.route.empty()) {
    explain.reason = absl::StrFormat("the GPU of %s failed earlier", std::string(options.route));
  } else if (costs()[chosen] == nullptr) {
    explain.reason = "there are no cost models";
  } else if (explain.predicted > options.latency_target) {
    explain.reason =
        absl::StrFormat("it is the fastest, but no route is predicted to answer within %s",
                        absl::FormatDuration(options.latency_target));
  } else {
    explain.reason = "it is predicted to be the fastest";
  }
}

absl::Duration Router::PredictedTime(Operation operation, size_t queries) const {
  // Each query of a Find is assumed to find the mean number of rows of the trials.
  const BatchShape shape{operation, queries, 0, false};
  const size_t best = Best(shape, ResultOrder::kCaller, 0, GpuIsOut(clock_()));
  const double time = Predict(best, shape);
  return time == kNever ? absl::ZeroDuration() : Nanoseconds(time);
}

size_t Router::BestBatch(Operation operation) const {
  const auto time_per_query = [&](size_t queries) {
    return absl::ToDoubleNanoseconds(PredictedTime(operation, queries)) /
           static_cast<double>(queries);
  };
  double least = kNever;
  for (size_t queries = 1; queries <= kLargestBatch; queries *= 2) {
    least = std::min(least, time_per_query(queries));
  }
  size_t queries = 1;
  while (time_per_query(queries) * kShareOfBest > least) queries *= 2;
  return queries;
}

std::vector<const Route*> Router::routes() const {
  std::vector<const Route*> routes;
  for (const Route& route : routes_) routes.push_back(&route);
  return routes;
}

std::vector<RouteStats> Router::Stats() const {
  std::vector<RouteStats> all(routes_.size());
  for (size_t i = 0; i < routes_.size(); ++i) {
    all[i].route = routes_[i].name();
    counters_[i].AddTo(&all[i]);
  }
  return all;
}

}  // namespace cairn
