#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "cpu_fast/batch/strategy_scratch.h"

namespace cairn {

// One way to answer batches: an ordered index, which the route does not own, and a strategy.
// Thread-safe.
class Route {
 public:
  Route(std::string name, const OrderedIndex* index, bool on_gpu, Strategy strategy, int threads);

  const std::string& name() const { return name_; }
  const OrderedIndex& index() const { return *index_; }
  bool on_gpu() const { return on_gpu_; }
  Strategy strategy() const { return strategy_; }

  // Returns whether the route supports such batches. An unbuffered route supports all operations in
  // the caller's order. Other routes support only point operations; a sort-based route supports
  // these in key order, too.
  bool Takes(Operation operation, ResultOrder order) const;

  // Answers a batch that it supports. Errors: those of the index and the strategy
  // (cpu_fast/batch/strategy.h).
  absl::Status Execute(const Batch& batch) const;

 private:
  // A FindFirst with Batch::rows. The search writes 32-bit ids into the same memory.
  absl::Status ExecuteNarrow(const Batch& batch) const;

  std::string name_;
  const OrderedIndex* index_;
  bool on_gpu_;
  Strategy strategy_;
  Parallelism parallelism_;                       // for large batches
  std::shared_ptr<StrategyScratchPool> scratch_;  // shared by copies of the route
};

}  // namespace cairn
