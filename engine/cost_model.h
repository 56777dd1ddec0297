#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cairn/route.h"

namespace cairn {

// What a batch asks of a route, as far as its time depends on it.
struct BatchShape {
  Operation operation = Operation::kFindFirst;
  size_t queries = 0;
  double rows = 0;      // that the batch is expected to find; Find and Scan
  bool sorted = false;  // the keys ascend
};

// The time that one route takes for a batch, in nanoseconds, as measured by trials
// (engine/calibration.h) and corrected by what is observed afterwards.
//
// A curve holds the time of a batch of 2^k queries for every k, for one kind of batch; between two
// of these, time is linear in the number of queries, which is exact for a fixed cost and a cost a
// query, and behind the last measured one the cost of a query stays what it was there. What a batch
// finds beyond the rows that the trials found costs `ns_per_row` for each row.
//
// Thread-safe: Predict and Observe may be called from any number of threads.
class CostModel {
 public:
  enum class Curve : uint8_t { kPoint, kSortedPoint, kFind, kCount };
  static constexpr size_t kCurves = 4;
  static constexpr size_t kKnots = 33;  // batches of up to 2^32 queries

  // The nanoseconds that a batch of this shape takes.
  double Predict(const BatchShape& shape) const;
  // Takes note of the nanoseconds that one took.
  void Observe(const BatchShape& shape, double nanoseconds);

 private:
  std::array<std::array<double, kKnots>, kCurves> knots_ = {};
};

}  // namespace cairn
