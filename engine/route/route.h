#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/route.h"
#include "cairn/strategy.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "cpu_fast/batch/strategy.h"
#include "cpu_fast/batch/strategy_scratch.h"

namespace cairn {

// One way to answer batches: an ordered index, which the route does not own, and a strategy.
// Thread-safe.
//
// The methods are OrderedIndex's, with the options that a SecondaryIndex heeds, and require that
// the route take such a batch (Takes). With ResultOrder::kKey options.query_of is as long as the
// batch.
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

  absl::Status FindFirst(KeyBatch keys, const QueryOptions& options,
                         absl::Span<RowId> row_ids) const;
  absl::Status Contains(KeyBatch keys, const QueryOptions& options, absl::Span<bool> found) const;
  absl::Status Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const;
  absl::Status Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                         absl::Span<Position> end) const;
  absl::Status Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const;
  absl::Status Scan(const RangeBatch& ranges, const QueryOptions& options, Matches* matches) const;

 private:
  StrategyOptions OptionsFor(const QueryOptions& options) const;

  std::string name_;
  const OrderedIndex* index_;
  bool on_gpu_;
  Strategy strategy_;
  Parallelism parallelism_;                       // of large batches
  std::shared_ptr<StrategyScratchPool> scratch_;  // of copies, too
};

}  // namespace cairn
