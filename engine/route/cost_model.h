#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cairn/query.h"

namespace cairn {

// The properties of a batch that its time on a route depends on.
struct BatchShape {
  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double rows = 0;      // expected number of rows; for Find and Scan
  bool sorted = false;  // the keys ascend
};

// The time of batches on one route, in nanoseconds, as measured by trials
// (engine/route/calibration.h). Plain data; stored with an index.
//
// A curve has the time of a batch of 2^k queries for every k. Between two of these, time is linear
// in the number of queries, which is exact for a fixed cost plus a cost per query.
struct CostCurves {
  enum Curve : uint8_t {
    kPoint,        // FindFirst and Contains
    kSortedPoint,  // the same for ascending keys
    kFind,         // Find, and Scan with the number of rows of Find's trials
    kCount,
  };
  static constexpr size_t kCurves = 4;
  static constexpr size_t kKnots = 33;  // batches of up to 2^32 queries
  using Knots = std::array<double, kKnots>;

  // Returns the curve for such a batch.
  static Curve Of(Operation operation, bool sorted);

  // Positive, and never decreasing from one knot to the next. All 0 if the route does not support
  // such batches.
  std::array<Knots, kCurves> ns = {};
  double rows_per_query = 1;  // rows per query in Find's trials
  double ns_per_row = 0;      // cost of each row of a batch beyond these

  bool has(Curve curve) const { return ns[curve][0] > 0; }
  // Returns the time on a curve; for fewer than one query, that of one.
  static double At(const Knots& knots, double queries);
  // Returns the time of a batch of this shape, without drift; infinite if there is no curve for it.
  double Time(const BatchShape& shape) const;

  bool operator==(const CostCurves&) const = default;
};

// How much slower than in its trials a device is at the moment, estimated from the batches on all
// of its routes. Causes are other work on the machine, or another clock frequency. The cost models
// of one device share it, so that a slowdown of all routes does not change their ranking.
// Thread-safe.
//
// Small batches wait for memory one query at a time, and large ones do not. So the two drift apart
// if the caller's own work evicts the index from the caches, and each class has its own drift.
class DeviceDrift {
 public:
  enum Class : uint8_t { kFewQueries, kManyQueries };
  static constexpr size_t kClasses = 2;

 private:
  friend class CostModel;
  struct PerClass {
    std::atomic<double> factor{1};
    std::atomic<double> busy_ns{0};  // total predicted time of batches
  };
  std::array<PerClass, kClasses> classes_;
};

// Predicts the time that a route takes for a batch: the trials' time, corrected by later
// observations.
//
// An observation moves the correction towards itself by a share that grows with the batch's time.
// The share is bounded, so a batch that was interrupted has little effect. The device takes the
// part of the correction that corresponds to this route's share of the device's time; the route
// takes the rest. So if only one route of a device is busy, its drift counts as the device's; a
// rarely used route has its own drift.
//
// Thread-safe.
class CostModel {
 public:
  // New trials are due if a drift by this factor, either way, lasts for this many batches and this
  // much time.
  static constexpr double kMaxDrift = 1.5;
  static constexpr uint64_t kBatchesBeforeTrials = 64;
  static constexpr double kNanosecondsBeforeTrials = 10e6;

  explicit CostModel(const CostCurves& curves, std::shared_ptr<DeviceDrift> device = nullptr);

  const CostCurves& curves() const { return curves_; }

  // Returns the predicted time of such a batch in nanoseconds; infinite if the route has no curve
  // for it.
  double Predict(const BatchShape& shape) const;
  // Records the measured time of a batch in nanoseconds.
  void Observe(const BatchShape& shape, double nanoseconds);

  // Returns the factor by which Predict multiplies the trials' time of such a batch.
  double drift(size_t queries) const;
  // Returns whether the trials of all routes of the device should be repeated. `times` is the
  // number of earlier repetitions. Each of them quadruples the number of batches and the time that
  // must pass before the next one, because it has not helped for long.
  bool CallsForTrials(int times) const;

 private:
  struct PerClass {
    std::atomic<double> factor{1};  // in addition to the device's
    std::atomic<double> busy_ns{0};
    // Since the drift was last within kMaxDrift.
    std::atomic<uint64_t> drifted_batches{0};
    std::atomic<double> drifted_ns{0};
  };

  const CostCurves curves_;
  const std::shared_ptr<DeviceDrift> device_;
  std::array<PerClass, DeviceDrift::kClasses> classes_;
};

}  // namespace cairn
