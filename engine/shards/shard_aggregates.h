#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "engine/aggregates/shared_keys.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_set.h"
#include "index/machine/mutex.h"

namespace cairn {

// Aggregates over the shards of one generation: each shard's exact results, put together before
// values are made of them. Thread-safe. Everything throws std::bad_alloc.
class ShardAggregates {
 public:
  // SecondaryIndex's methods AggregateRanges and AggregateGroups.
  absl::Status Ranges(const ShardedState& state, const RangeBatch& ranges,
                      absl::Span<const Aggregate> aggregates, std::vector<ColumnValues>* values);
  absl::Status AggregateGroupsResult(const ShardedState& state, const RangeBatch& ranges,
                                     size_t leading_parts, absl::Span<const Aggregate> aggregates,
                                     const AggregateGroupsOptions& options,
                                     cairn::AggregateGroupsResult* groups);

  // What is kept for counts of different keys.
  uint64_t memory_bytes() const;

 private:
  // The keys that several shards have in these versions. Made for the last versions asked about.
  std::shared_ptr<const SharedKeys> SharedOf(const ShardedState& state);

  mutable Mutex mutex_;
  std::vector<std::weak_ptr<const IndexVersion>> versions_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const SharedKeys> shared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
