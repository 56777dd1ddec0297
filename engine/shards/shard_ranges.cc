// The part of a sharded index's Execute for ranges.
#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_scan.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::Status CountRanges(const ShardedState& state, const Batch& batch) {
  std::vector<ShardInterval> intervals(batch.size());
  state.routing.RouteRanges(batch.ranges, absl::MakeSpan(intervals));
  const size_t shards = state.routing.shards();
  const ShardAssignment assignment = Assign(intervals, shards);
  std::vector<std::vector<uint64_t>> counts(shards);
  std::vector<Explain> explains(batch.explain == nullptr ? 0 : shards);
  RETURN_IF_ERROR(ForEachAskedShard(state, assignment, [&](size_t s) {
    return Guarded("counting entries of a shard", [&] {
      GatheredRanges ranges;
      ranges.Gather(batch.ranges, assignment.queries(s));
      counts[s].resize(assignment.queries(s).size());
      Batch part = Batch::Count(ranges.Batch(), absl::MakeSpan(counts[s]), batch.options);
      if (batch.explain != nullptr) part.explain = &explains[s];
      return state.versions[s]->Execute(part, state.threads);
    });
  }));
  std::fill(batch.counts.begin(), batch.counts.end(), 0);
  for (size_t s = 0; s < shards; ++s) {
    const absl::Span<const uint32_t> queries = assignment.queries(s);
    for (size_t i = 0; i < queries.size(); ++i) batch.counts[queries[i]] += counts[s][i];
  }
  if (batch.explain != nullptr) CombineExplains(batch, explains, assignment, state.lanes);
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerShardedRanges(const ShardedState& state, const Batch& batch) {
  if (!batch.ranges.after.empty() && batch.ranges.after.size() != batch.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", batch.ranges.after.size(), batch.size()));
  }
  if (batch.operation == Operation::kCount) return AnswerInSlices(state, batch, CountRanges);
  return ShardScan(state, batch).Run();
}

}  // namespace cairn
