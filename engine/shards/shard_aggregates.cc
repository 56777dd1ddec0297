// The aggregates of the shards of a ShardSet.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_set.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// The number of ranges whose results are in memory at a time.
constexpr size_t kRangesAtOnce = size_t{1} << 16;

bool CountsKeys(absl::Span<const Aggregate> aggregates) {
  return std::any_of(aggregates.begin(), aggregates.end(), [](const Aggregate& aggregate) {
    return aggregate.function == AggregateFunction::kCountDistinct;
  });
}

// Appends the values of some ranges. The first one is range number `at` of the caller.
absl::Status AppendValues(const ShardedState& state, const RangeBatch& ranges, size_t at,
                          const AggregatePlan& plan, const SharedKeys* shared,
                          const StopCondition& stop, std::vector<ColumnValues>* values) {
  std::vector<ShardInterval> intervals(ranges.size());
  state.routing.RouteRanges(ranges, absl::MakeSpan(intervals));
  const ShardAssignment assignment = Assign(intervals, state.routing.shards());
  std::vector<PartialResults> parts(state.routing.shards(), {AggregateResults(plan), {}});
  RETURN_IF_ERROR(ForEachAskedShard(state, assignment, [&](size_t s) {
    return Guarded("computing aggregates of a shard", [&] {
      const absl::Span<const uint32_t> queries = assignment.queries(s);
      GatheredRanges of_shard;
      of_shard.Gather(ranges, queries);
      parts[s].ranges.assign(queries.begin(), queries.end());
      return state.versions[s]->AggregateRanges(of_shard.Batch(), plan, state.threads, stop,
                                                &parts[s].results);
    });
  }));
  AggregateResults results = CombineResults(plan, parts, ranges.size());
  for (size_t i = 0; i < results.keys.size(); ++i) {
    results.keys[i] -= shared->Repeats(shared->Find(ranges, i));
  }
  return results.Output(
      plan, ranges.size(), [&](size_t i) { return absl::StrFormat("range %d", at + i); },
      absl::MakeSpan(*values));
}

}  // namespace

std::shared_ptr<const SharedKeys> ShardAggregates::SharedOf(const ShardedState& state) {
  const MutexLock lock(&mutex_);
  const bool there = shared_ != nullptr &&
                     std::equal(versions_.begin(), versions_.end(), state.versions.begin(),
                                state.versions.end(), [](const auto& made_of, const auto& version) {
                                  return made_of.lock() == version;
                                });
  if (there) return shared_;
  std::vector<const Delta*> deltas;
  for (const auto& version : state.versions) deltas.push_back(version->delta.get());
  std::vector<std::weak_ptr<const IndexVersion>> versions(state.versions.begin(),
                                                          state.versions.end());
  shared_ = state.routing.asks_all() ? SharedKeys::Of(deltas) : SharedKeys::OfNeighbours(deltas);
  versions_ = std::move(versions);
  return shared_;
}

uint64_t ShardAggregates::memory_bytes() const {
  const MutexLock lock(&mutex_);
  return shared_ == nullptr ? 0 : shared_->memory_bytes();
}

absl::Status ShardAggregates::OfRanges(const ShardedState& state, const RangeBatch& ranges,
                                       absl::Span<const Aggregate> aggregates,
                                       const QueryOptions& options,
                                       std::vector<ColumnValues>* values) {
  const StopCondition stop = StopCondition::Of(options);
  const IndexVersion& first = *state.versions[0];
  if (state.versions.size() == 1) {
    return first.AggregateRanges(ranges, aggregates, state.threads, stop, values);
  }
  if (!ranges.after.empty()) {
    return absl::InvalidArgumentError("expected no cursors: aggregates cover whole ranges");
  }
  ASSIGN_OR_RETURN(const AggregatePlan plan,
                   AggregatePlan::Make(first.delta->base_columns.columns(), aggregates));
  RETURN_IF_ERROR(CheckQueries(first.base->codec.kind(), Batch::Count(ranges, {})));
  *values = plan.Columns();
  RETURN_IF_ERROR(stop.Check());
  const auto shared = plan.counts_keys ? SharedOf(state) : nullptr;
  for (size_t at = 0; at < ranges.size(); at += kRangesAtOnce) {
    const RangeBatch some = ranges.Slice(at, std::min(kRangesAtOnce, ranges.size() - at));
    RETURN_IF_ERROR(AppendValues(state, some, at, plan, shared.get(), stop, values));
  }
  return absl::OkStatus();
}

absl::Status ShardAggregates::OfGroups(const ShardedState& state, const RangeBatch& ranges,
                                       size_t leading_parts, absl::Span<const Aggregate> aggregates,
                                       const QueryOptions& options, AggregateGroupsResult* groups) {
  std::vector<const IndexVersion*> versions;
  for (const auto& version : state.versions) versions.push_back(version.get());
  const auto shared = versions.size() > 1 && CountsKeys(aggregates) ? SharedOf(state) : nullptr;
  return AggregateGroupsOf(versions, shared.get(), ranges, leading_parts, aggregates, options,
                           state.threads, groups);
}

}  // namespace cairn
