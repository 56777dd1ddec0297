#include "engine/route/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace cairn {
namespace {

// Batches of fewer queries do not fill the searches' pipelines. FAST (section 7) and PointLookup
// reach full throughput at 64.
constexpr size_t kManyQueries = 64;

// The weight of an observation is its time in milliseconds, within these bounds. So a drift is
// accepted after about 16 large batches, or a millisecond of small ones.
constexpr double kFullWeightNanoseconds = 1e6;
constexpr double kMinWeight = 1.0 / 1024;
constexpr double kMaxWeight = 1.0 / 16;
// A larger error counts as an error by this factor.
constexpr double kMaxError = 2;
// Maximum factor by which a route is believed to have become faster or slower.
constexpr double kMaxFactor = 64;

// Only one in kSampleOneIn batches below this time is observed. The counters that threads share
// would cost small batches more than the rest of the routing.
constexpr double kSampledNanoseconds = 4000;
constexpr uint32_t kSampleOneIn = 16;

bool OneInSixteen() {
  thread_local uint32_t state = 0x9E3779B9;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % kSampleOneIn == 0;
}

DeviceDrift::Class ClassOf(size_t queries) {
  return queries < kManyQueries ? DeviceDrift::kFewQueries : DeviceDrift::kManyQueries;
}

// These are statistics, so an update that is lost between threads does no harm.
template <typename T>
T Get(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}
template <typename T>
void Set(std::atomic<T>* value, T to) {
  value->store(to, std::memory_order_relaxed);
}
void Multiply(std::atomic<double>* factor, double by) {
  Set(factor, std::clamp(Get(*factor) * by, 1 / kMaxFactor, kMaxFactor));
}

}  // namespace

CostCurves::Curve CostCurves::Of(Operation operation, bool sorted) {
  switch (operation) {
    case Operation::kFind:
    case Operation::kScan:
      return kFind;
    case Operation::kCount:
    case Operation::kPositions:
      return kCount;
    default:
      break;
  }
  return sorted ? kSortedPoint : kPoint;
}

double CostCurves::At(const Knots& knots, double queries) {
  queries = std::max(queries, 1.0);
  const auto whole = static_cast<uint64_t>(queries);
  const size_t k = std::min<size_t>(std::bit_width(whole) - 1, kKnots - 2);
  const auto at_knot = static_cast<double>(uint64_t{1} << k);
  return knots[k] + (knots[k + 1] - knots[k]) * (queries - at_knot) / at_knot;
}

double CostCurves::Time(const BatchShape& shape) const {
  const Curve curve = Of(shape.operation, shape.sorted);
  if (!has(curve)) return std::numeric_limits<double>::infinity();
  const auto queries = static_cast<double>(shape.queries);
  double time = At(ns[curve], queries);
  if (curve == kFind) {
    time += std::max(shape.rows - rows_per_query * queries, 0.0) * ns_per_row;
  }
  return time;
}

CostModel::CostModel(const CostCurves& curves, std::shared_ptr<DeviceDrift> device)
    : curves_(curves),
      device_(device != nullptr ? std::move(device) : std::make_shared<DeviceDrift>()) {}

double CostModel::drift(size_t queries) const {
  const DeviceDrift::Class which = ClassOf(queries);
  return Get(classes_[which].factor) * Get(device_->classes_[which].factor);
}

double CostModel::Predict(const BatchShape& shape) const {
  return curves_.Time(shape) * drift(shape.queries);
}

void CostModel::Observe(const BatchShape& shape, double nanoseconds) {
  const double predicted = Predict(shape);
  if (!(nanoseconds > 0) || !std::isfinite(predicted)) return;
  if (predicted < kSampledNanoseconds && !OneInSixteen()) return;
  PerClass& route = classes_[ClassOf(shape.queries)];
  DeviceDrift::PerClass& device = device_->classes_[ClassOf(shape.queries)];
  Set(&route.busy_ns, Get(route.busy_ns) + predicted);
  Set(&device.busy_ns, Get(device.busy_ns) + predicted);
  const double share = std::min(Get(route.busy_ns) / Get(device.busy_ns), 1.0);

  // Approximates the logarithm of the prediction's error.
  const double ratio = std::clamp(nanoseconds / predicted, 1 / kMaxError, kMaxError);
  const double error = 2 * (ratio - 1) / (ratio + 1);
  const double step =
      error * std::clamp(predicted / kFullWeightNanoseconds, kMinWeight, kMaxWeight);
  Multiply(&device.factor, 1 + step * share);
  Multiply(&route.factor, 1 + step * (1 - share));

  const double drifted = drift(shape.queries);
  if (drifted > kMaxDrift || drifted < 1 / kMaxDrift) {
    Set(&route.drifted_batches, Get(route.drifted_batches) + 1);
    Set(&route.drifted_ns, Get(route.drifted_ns) + predicted);
  } else if (Get(route.drifted_batches) != 0) {
    Set(&route.drifted_batches, uint64_t{0});
    Set(&route.drifted_ns, 0.0);
  }
}

bool CostModel::CallsForTrials(int times) const {
  const int shift = 2 * std::clamp(times, 0, 20);
  for (const PerClass& of_class : classes_) {
    if (Get(of_class.drifted_batches) >= kBatchesBeforeTrials << shift &&
        Get(of_class.drifted_ns) >= std::ldexp(kNanosecondsBeforeTrials, shift)) {
      return true;
    }
  }
  return false;
}

}  // namespace cairn
