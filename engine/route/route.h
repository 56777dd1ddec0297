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

  // Whether the route answers such batches: an unbuffered one all whose results are in the caller's
  // order, others those of points, and a sort-based one these in key order too.
  bool Takes(Operation operation, ResultOrder order) const;

  // Answers a batch that it takes; errors as the index's and the strategy's
  // (cpu_fast/batch/strategy.h).
  absl::Status Execute(const Batch& batch) const;

 private:
  std::string name_;
  const OrderedIndex* index_;
  bool on_gpu_;
  Strategy strategy_;
  Parallelism parallelism_;                       // of large batches
  std::shared_ptr<StrategyScratchPool> scratch_;  // of copies, too
};

}  // namespace cairn
