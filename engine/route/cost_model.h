#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cairn/query.h"

namespace cairn {

// What a batch asks of a route, as far as its time depends on it.
struct BatchShape {
  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double rows = 0;      // that the batch is expected to find; Find and Scan
  bool sorted = false;  // the keys ascend
};

// The time of batches on one route, in nanoseconds, as trials found it
// (engine/route/calibration.h). Plain data; what is stored beside an index.
//
// A curve holds the time of a batch of 2^k queries for every k; between two of these, time is
// linear in the number of queries, which is exact for a fixed cost and a cost a query.
struct CostCurves {
  enum Curve : uint8_t {
    kPoint,        // FindFirst and Contains
    kSortedPoint,  // of keys that ascend
    kFind,         // and Scan of as many rows as Find's trials found
    kCount,
  };
  static constexpr size_t kCurves = 4;
  static constexpr size_t kKnots = 33;  // batches of up to 2^32 queries
  using Knots = std::array<double, kKnots>;

  // The curve that such a batch is on.
  static Curve Of(Operation operation, bool sorted);

  // Positive, never falling from one knot to the next; all 0 where the route does not take such
  // batches.
  std::array<Knots, kCurves> ns = {};
  double rows_per_query = 1;  // that Find's trials found
  double ns_per_row = 0;      // of each row that a batch finds beyond these

  bool has(Curve curve) const { return ns[curve][0] > 0; }
  // The time on a curve, one query at least.
  static double At(const Knots& knots, double queries);
  // The time of a batch of this shape, without drift; infinite where there is no curve for it.
  double Time(const BatchShape& shape) const;

  bool operator==(const CostCurves&) const = default;
};

// How much slower than its trials a device is at the moment, as the batches on all of its routes
// tell: other work on the machine, or another clock frequency. Shared by the cost models of one
// device, so that what slows all of its routes changes nothing between them. Thread-safe.
//
// Batches of few queries, which wait for memory one query at a time, and large ones, which do not,
// drift apart where the caller's own work drives the index out of the caches. So each class has a
// drift of its own.
class DeviceDrift {
 public:
  enum Class : uint8_t { kFewQueries, kManyQueries };
  static constexpr size_t kClasses = 2;

 private:
  friend class CostModel;
  struct PerClass {
    std::atomic<double> factor{1};
    std::atomic<double> busy_ns{0};  // that batches took, all told
  };
  std::array<PerClass, kClasses> classes_;
};

// The time that a route takes for a batch: what trials found, corrected by what is observed
// afterwards.
//
// An observation moves the correction towards itself by a share that grows with the batch's time,
// and never far, so that a batch that was interrupted does little. Of this correction the device
// bears the share that this route has in the device's time, and the route the rest: a device's only
// busy route cannot tell its own drift from the device's, a seldom one can.
//
// Thread-safe: every method may be called from any number of threads.
class CostModel {
 public:
  // A drift of 1.5, either way, that lasts for so many batches and so much time calls for new
  // trials.
  static constexpr double kMaxDrift = 1.5;
  static constexpr uint64_t kBatchesBeforeTrials = 64;
  static constexpr double kNanosecondsBeforeTrials = 10e6;

  explicit CostModel(const CostCurves& curves, std::shared_ptr<DeviceDrift> device = nullptr);

  const CostCurves& curves() const { return curves_; }

  // The nanoseconds that a batch of this shape takes; infinite where the route has no curve for it.
  double Predict(const BatchShape& shape) const;
  // Takes note of the nanoseconds that one took.
  void Observe(const BatchShape& shape, double nanoseconds);

  // What Predict multiplies the trials' time with, for such a batch.
  double drift(size_t queries) const;
  // Whether trials should be made again, of all routes of the device. Where that has been done
  // `times` times already, and so did not help for long, four times as many batches and as much
  // time are waited for with each.
  bool CallsForTrials(int times) const;

 private:
  struct PerClass {
    std::atomic<double> factor{1};  // beside the device's
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
