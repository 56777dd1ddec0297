// The part of a sharded index's Execute for points.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/shards/shard_batch.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/match_rows.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

// One shard's part of a batch, and its results.
struct PointPart {
  GatheredKeys keys;
  std::vector<RowId> row_ids;
  std::unique_ptr<bool[]> found;
  FindResult matches;

  // The part as a separate batch.
  Batch Of(const Batch& whole, absl::Span<const uint32_t> queries) {
    keys.Gather(whole.keys, queries);
    Batch part = whole;
    part.keys = keys.Batch();
    part.rows = {};
    part.query_of = {};
    part.explain = nullptr;
    part.options.result_order = ResultOrder::kCaller;
    if (whole.operation == Operation::kFindFirst) {
      row_ids.resize(queries.size());
      part.values = absl::MakeSpan(row_ids);
    } else if (whole.operation == Operation::kContains) {
      found = std::make_unique<bool[]>(queries.size());
      part.found = absl::MakeSpan(found.get(), queries.size());
    } else {
      part.matches = &matches;
    }
    return part;
  }
};

// Reorders the parts' results to the order of the batch. If several shards have a key, its results
// are in shard order.
void Combine(const ShardAssignment& assignment, const std::vector<PointPart>& parts,
             const Batch& batch) {
  if (batch.operation == Operation::kFindFirst) {
    std::fill(batch.rows.begin(), batch.rows.end(), kNoGlobalRow);
  } else if (batch.operation == Operation::kContains) {
    std::fill(batch.found.begin(), batch.found.end(), false);
  }
  for (size_t s = 0; s < parts.size(); ++s) {
    const absl::Span<const uint32_t> queries = assignment.queries(s);
    for (size_t i = 0; i < queries.size(); ++i) {
      const uint32_t query = queries[i];
      if (batch.operation == Operation::kContains) {
        batch.found[query] |= parts[s].found[i];
      } else if (batch.rows[query] == kNoGlobalRow && parts[s].row_ids[i] != kNoRow) {
        batch.rows[query] = MakeGlobalRowId(static_cast<uint32_t>(s), parts[s].row_ids[i]);
      }
    }
  }
}

absl::Status CombineMatches(const ShardAssignment& assignment, const std::vector<PointPart>& parts,
                            const Batch& batch) {
  FindResult& all = *batch.matches;
  RETURN_IF_ERROR(BeginMatches(batch.keys.kind(), batch.size(), &all));
  std::fill(all.offsets.begin(), all.offsets.end(), 0);
  for (size_t s = 0; s < parts.size(); ++s) {
    const absl::Span<const uint32_t> queries = assignment.queries(s);
    for (size_t i = 0; i < queries.size(); ++i) {
      all.offsets[queries[i] + size_t{1}] += parts[s].matches[i].size();
    }
  }
  std::partial_sum(all.offsets.begin(), all.offsets.end(), all.offsets.begin());
  all.row_ids.resize(all.offsets.back());
  all.shards.resize(all.offsets.back());
  std::vector<uint64_t> next(all.offsets.begin(), all.offsets.end() - 1);
  for (size_t s = 0; s < parts.size(); ++s) {
    const absl::Span<const uint32_t> queries = assignment.queries(s);
    for (size_t i = 0; i < queries.size(); ++i) {
      const absl::Span<const RowId> rows = parts[s].matches[i];
      uint64_t& to = next[queries[i]];
      std::copy(rows.begin(), rows.end(), all.row_ids.begin() + static_cast<ptrdiff_t>(to));
      std::fill_n(all.shards.begin() + static_cast<ptrdiff_t>(to), rows.size(),
                  static_cast<uint32_t>(s));
      to += rows.size();
    }
  }
  return absl::OkStatus();
}

absl::Status AnswerInCallerOrder(const ShardedState& state, const Batch& batch) {
  std::vector<ShardInterval> intervals(batch.size());
  state.routing.RouteKeys(batch.keys, absl::MakeSpan(intervals));
  const ShardAssignment assignment = Assign(intervals, state.routing.shards());
  std::vector<PointPart> parts(state.routing.shards());
  std::vector<Explain> explains(batch.explain == nullptr ? 0 : parts.size());
  RETURN_IF_ERROR(ForEachAskedShard(state, assignment, [&](size_t s) {
    return Guarded("answering a batch of a shard", [&] {
      Batch part = parts[s].Of(batch, assignment.queries(s));
      if (batch.explain != nullptr) part.explain = &explains[s];
      return state.versions[s]->Execute(part, state.threads);
    });
  }));
  if (batch.explain != nullptr) CombineExplains(batch, explains, assignment, state.lanes);
  if (batch.operation == Operation::kFind) return CombineMatches(assignment, parts, batch);
  Combine(assignment, parts, batch);
  return absl::OkStatus();
}

// As above, in slices if the batch is large and each query has one result.
absl::Status AnswerInOrder(const ShardedState& state, const Batch& batch) {
  if (batch.operation == Operation::kFind) return AnswerInCallerOrder(state, batch);
  return AnswerInSlices(state, batch, AnswerInCallerOrder);
}

}  // namespace

absl::Status AnswerShardedPoints(const ShardedState& state, const Batch& batch) {
  std::iota(batch.query_of.begin(), batch.query_of.end(), 0);
  if (batch.options.result_order != ResultOrder::kKey) return AnswerInOrder(state, batch);
  // The batch's keys in sorted order form a batch in the caller's order.
  WithPhysicalKey(batch.keys.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const absl::Span<const Key> keys = batch.keys.as<Key>();
    std::stable_sort(batch.query_of.begin(), batch.query_of.end(),
                     [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  });
  GatheredKeys sorted;
  sorted.Gather(batch.keys, batch.query_of);
  Batch in_order = batch;
  in_order.keys = sorted.Batch();
  in_order.options.sorted_input = true;
  return AnswerInOrder(state, in_order);
}

}  // namespace cairn
