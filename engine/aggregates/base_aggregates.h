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

// The structures that answer aggregates over one base and its versions. Each is built on first use.
// Thread-safe.
class BaseAggregates {
 public:
  // Throws std::bad_alloc.
  BaseAggregates(SortedRun run, ColumnTable columns);

  // Return the structure that a measure needs over the base's entries, for an existing column.
  // Build it on up to `threads` threads on first use. Errors: those of the structure's Build.
  template <typename Structure>
  absl::StatusOr<const Structure*> Get(size_t column, int threads) const;
  absl::StatusOr<const DistinctRanks*> Distinct(int threads) const;

  // Returns the additional structures of a version over the base. Throws std::bad_alloc.
  std::shared_ptr<DeltaAggregates> Of(const std::shared_ptr<const Delta>& delta) const;

  // Builds the structures that aggregates of these columns need. Ignores columns that do not exist.
  // Errors: those of Get.
  absl::Status Make(absl::Span<const std::string> columns, int threads) const;
  // Builds the structures that `other` has for columns of the same names. Errors: those of Get.
  absl::Status MakeAs(const BaseAggregates& other, int threads) const;

  std::vector<IndexStats::Aggregates> Stats() const;

 private:
  // The structures of a version. The weak pointer identifies the version without keeping its
  // memory.
  struct OfDelta {
    std::weak_ptr<const Delta> delta;
    std::shared_ptr<DeltaAggregates> aggregates;
    bool is_branch;
  };

  const SortedRun run_;
  const ColumnTable columns_;
  const RunAggregates base_;
  mutable MadeOnce<DistinctRanks> distinct_;
  mutable Mutex mutex_;
  mutable std::vector<OfDelta> deltas_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace cairn
