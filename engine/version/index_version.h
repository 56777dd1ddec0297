#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "engine/version/base.h"
#include "index/machine/stop_flag.h"

namespace cairn {

class SharedKeys;
struct AggregatePlan;
struct AggregateResults;
struct GroupResults;

// The state of an index that one query sees: a base, a delta, and the state of the database that
// both together represent. Immutable; its parts live as long as any version that has them.
struct IndexVersion {
  std::shared_ptr<const Base> base;
  std::shared_ptr<const Delta> delta;
  SequenceNumber sequence = 0;

  const IndexSpec& spec() const { return base->spec; }

  // SecondaryIndex::Execute and Columns. Throw std::bad_alloc.
  absl::Status Execute(const Batch& batch, int threads) const;
  absl::Status Columns(absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns, const StopCondition& stop = {}) const;
  // SecondaryIndex's methods of these names. Throw std::bad_alloc.
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               int threads, const StopCondition& stop,
                               std::vector<ColumnValues>* values) const;
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               int threads, AggregateGroupsResult* groups) const;
  // The results of a plan over the index's columns, for combining those of several versions.
  absl::Status AggregateRanges(const RangeBatch& ranges, const AggregatePlan& plan, int threads,
                               const StopCondition& stop, AggregateResults* results) const;
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               const AggregatePlan& plan, const QueryOptions& options, int threads,
                               GroupResults* results) const;

  // The same version with its delta in the best form for this many ranges (CompactDelta).
  IndexVersion ToAsk(size_t ranges) const;

 private:
  absl::Status AnswerEntries(const Batch& batch, int threads) const;
};

// AggregateGroups of several versions of one spec, as if they were one index. `shared`: the keys
// that several of them have, required for counts of distinct keys; null: none.
absl::Status AggregateGroupsOf(absl::Span<const IndexVersion* const> versions,
                               const SharedKeys* shared, const RangeBatch& ranges,
                               size_t leading_parts, absl::Span<const Aggregate> aggregates,
                               const QueryOptions& options, int threads,
                               AggregateGroupsResult* groups);

// Prepares a batch for its requested columns. InvalidArgument if its operation returns none.
absl::Status BeginColumns(const Batch& batch);

}  // namespace cairn
