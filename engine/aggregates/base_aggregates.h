#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/secondary_index.h"
#include "cairn/sorted_run.h"
#include "engine/aggregates/delta_aggregates.h"
#include "engine/aggregates/measures.h"
#include "engine/aggregates/run_aggregates.h"
#include "engine/delta/delta.h"
#include "index/aggregates/distinct_ranks.h"
#include "index/columns/column_table.h"
#include "index/machine/mutex.h"

namespace cairn {

// What answers aggregates over one base and the versions that it has: made when it is first asked
// for. Thread-safe.
class BaseAggregates {
 public:
  // Throws std::bad_alloc.
  BaseAggregates(SortedRun run, ColumnTable columns);

  // What a measure asks over the base's entries, of a column that there is, made on up to `threads`
  // threads. Errors as the structure's Build's.
  template <typename Structure>
  absl::StatusOr<const Structure*> Get(size_t column, int threads) const;
  absl::StatusOr<const DistinctRanks*> Distinct(int threads) const;

  // What a version over the base has besides. Throws std::bad_alloc.
  std::shared_ptr<DeltaAggregates> Of(const std::shared_ptr<const Delta>& delta) const;

  // Makes what all aggregates of these columns ask, of those that there are. Errors as Get's.
  absl::Status Make(absl::Span<const std::string> columns, int threads) const;
  // Makes what `other` has of the columns of the same names. Errors as Get's.
  absl::Status MakeAs(const BaseAggregates& other, int threads) const;

  std::vector<IndexStats::Aggregates> Stats() const;

 private:
  // The aggregates of a version, and which that is. The version itself is not held: that would keep
  // the memory of all that is removed after it.
  struct OfDelta {
    std::weak_ptr<const Delta> delta;
    std::shared_ptr<DeltaAggregates> aggregates;
  };

  const SortedRun run_;
  const ColumnTable columns_;
  const RunAggregates base_;
  mutable MadeOnce<DistinctRanks> distinct_;
  mutable Mutex mutex_;
  mutable std::vector<OfDelta> deltas_ ABSL_GUARDED_BY(mutex_);  // the last one asked for is first
};

}  // namespace cairn
