#include "gpu/host/gpu_index.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/host/bound_keys.h"
#include "gpu/host/bound_strings.h"
#include "gpu/host/host_rows.h"
#include "gpu/host/query_context.h"
#include "gpu/host/string_batch.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"

namespace cairn::gpu {
namespace {

constexpr auto NothingToFill = [](size_t, size_t, size_t, void*) {};

// Finds both ends of all ranges in one search, through temporary keys and positions. Used for small
// batches, where kernel launches dominate, and for ranges with per-range bounds. `begin` and `end`
// may be the halves of the context's positions.
template <typename Key>
absl::Status PositionsByOneSearch(const DeviceIndex& index, const RangeBatch& ranges,
                                  absl::Span<Position> begin, absl::Span<Position> end,
                                  const HostBatchPolicy& policy, QueryContext& context) {
  const size_t bounds = 2 * ranges.size();
  ASSIGN_OR_RETURN(auto* positions, context.Positions(bounds));
  const BoundKeys<Key> keys(ranges);
  const auto fill = [&](size_t, size_t first, size_t count, void* to) {
    keys.Fill(first, count, to);
  };
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    return index.Execute(
        DeviceBatch::LowerBound(KeysIn(index.kind(), in[0], count), static_cast<Position*>(out[0])),
        stream);
  };
  const HostColumn inputs[] = {{nullptr, sizeof(Key)}};
  const HostColumn outputs[] = {{positions, sizeof(Position)}};
  absl::Status status = RunHostBatch(
      {bounds, inputs, outputs, index.writes_results_once(), fill, search}, policy, context);
  if (status.ok()) keys.Finish(positions, index.size(), begin, end);
  return status;
}

// For ranges that all have the same bounds. The device reads the caller's keys directly, and only
// once if they are both the lower and the upper keys.
absl::Status PositionsOfRanges(const DeviceIndex& index, const RangeBatch& batch,
                               absl::Span<Position> begin, absl::Span<Position> end,
                               const HostBatchPolicy& policy, QueryContext& context) {
  const HostColumn inputs[] = {InputOf(batch.lower), InputOf(batch.upper)};
  const size_t distinct = inputs[0].data == inputs[1].data ? 1 : 2;
  const auto search = [&](const void* const* in, void* const* out, size_t count,
                          cudaStream_t stream) {
    DeviceRanges ranges;
    ranges.lower = KeysIn(index.kind(), in[0], count);
    ranges.upper = KeysIn(index.kind(), in[distinct - 1], count);
    ranges.lower_bound = batch.lower_bound;
    ranges.upper_bound = batch.upper_bound;
    return index.Execute(DeviceBatch::Positions(ranges, static_cast<Position*>(out[0]),
                                                static_cast<Position*>(out[1])),
                         stream);
  };
  const HostColumn outputs[] = {{begin.data(), sizeof(Position)}, {end.data(), sizeof(Position)}};
  return RunHostBatch({batch.size(), absl::MakeConstSpan(inputs).first(distinct), outputs, false,
                       NothingToFill, search},
                      policy, context);
}

// The longest key of a run, in bytes.
size_t LongestKey(const SortedRun& run) {
  size_t longest = 0;
  if (run.kind() != PhysicalType::kBytes) return longest;
  for (size_t i = 0; i < run.size(); ++i) longest = std::max(longest, run.bytes()[i].size());
  return longest;
}

}  // namespace

GpuIndex::GpuIndex(SortedRun run, std::unique_ptr<const DeviceIndex> index,
                   const HostBatchPolicy& policy)
    : OrderedIndex(std::move(run)),
      index_(std::move(index)),
      policy_(policy),
      longest_key_(LongestKey(this->run())) {}

std::string GpuIndex::description() const {
  return index_->device() == 0
             ? index_->description()
             : absl::StrFormat("%s,device=%d", index_->description(), index_->device());
}

absl::Status GpuIndex::StringPoints(const Batch& batch, HostColumn results,
                                    QueryContext& context) const {
  const absl::Span<const std::string_view> keys = batch.keys.bytes();
  const StringsOf strings([keys](size_t i) { return StringKey{keys[i]}; }, longest_key_);
  const auto search = [&](DeviceKeys some_keys, void* out, cudaStream_t stream) {
    return index_->Execute(PointBatch(batch.operation, some_keys, out), stream);
  };
  return RunStringBatch({batch.size(), &strings, longest_key_ + 1, results, search}, policy_,
                        context);
}

absl::Status GpuIndex::StringPositions(const RangeBatch& ranges, absl::Span<Position> begin,
                                       absl::Span<Position> end, QueryContext& context) const {
  const size_t bounds = 2 * ranges.size();
  ASSIGN_OR_RETURN(auto* positions, context.Positions(bounds));
  const BoundStrings keys(ranges);
  const StringsOf strings([&keys](size_t i) { return keys(i); }, longest_key_);
  const auto search = [&](DeviceKeys some_keys, void* out, cudaStream_t stream) {
    return index_->Execute(DeviceBatch::LowerBound(some_keys, static_cast<Position*>(out)), stream);
  };
  RETURN_IF_ERROR(
      RunStringBatch({bounds, &strings, longest_key_ + 1, {positions, sizeof(Position)}, search},
                     policy_, context));
  keys.Finish(positions, index_->size(), begin, end);
  return absl::OkStatus();
}

absl::Status GpuIndex::Points(const Batch& batch, HostColumn results, QueryContext& context) const {
  if (run().kind() == PhysicalType::kBytes) return StringPoints(batch, results, context);
  const auto enqueue = [&](const void* const* in, void* const* out, size_t count,
                           cudaStream_t stream) {
    const DeviceKeys keys = KeysIn(batch.keys.kind(), in[0], count);
    return index_->Execute(PointBatch(batch.operation, keys, out[0]), stream);
  };
  const HostColumn inputs[] = {InputOf(batch.keys)};
  const HostColumn outputs[] = {results};
  return RunHostBatch(
      {batch.size(), inputs, outputs, index_->writes_results_once(), NothingToFill, enqueue},
      policy_, context);
}

absl::Status GpuIndex::Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                                 absl::Span<Position> end, QueryContext& context) const {
  if (run().kind() == PhysicalType::kBytes) return StringPositions(ranges, begin, end, context);
  const bool uniform = ranges.lower_bounds.empty() && ranges.upper_bounds.empty();
  if (uniform && 2 * ranges.size() > policy_.max_zero_copy) {
    return PositionsOfRanges(*index_, ranges, begin, end, policy_, context);
  }
  return run().kind() == PhysicalType::kU32
             ? PositionsByOneSearch<uint32_t>(*index_, ranges, begin, end, policy_, context)
             : PositionsByOneSearch<uint64_t>(*index_, ranges, begin, end, policy_, context);
}

absl::Status GpuIndex::Rows(const RangeBatch& ranges, const QueryOptions& options,
                            FindResult* matches, QueryContext& context) const {
  const size_t size = ranges.size();
  ASSIGN_OR_RETURN(auto* positions, context.Positions(2 * size));
  const absl::Span<Position> begin(positions, size), end(positions + size, size);
  absl::Status status = Positions(ranges, begin, end, context);
  if (status.ok()) status = PlanMatches(run().kind(), options, begin, end, matches);
  if (!status.ok()) return status;
  if (matches->row_ids.size() <= policy_.max_rows_from_run) {
    status = CopyRows(run(), options, 0, begin, end, matches);
  } else {
    status = CopyRowsToHost(*index_, begin, end, matches->offsets, options.order,
                            matches->row_ids.data(), policy_, context);
  }
  if (!status.ok()) return status;
  return AppendKeys(run(), options, begin, end, matches);
}

absl::Status GpuIndex::Execute(const Batch& batch) const {
  RETURN_IF_ERROR(CheckBatch(run().kind(), batch));
  RETURN_IF_ERROR(StopCondition::Of(batch.options).Check());
  if (batch.empty()) {
    return batch.gives_matches() ? BeginMatches(run().kind(), 0, batch.matches) : absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const QueryContextLease context, QueryContextLease::Acquire(index_->device()));
  const size_t size = batch.size();
  switch (batch.operation) {
    case Operation::kFindFirst:
    case Operation::kLowerBound:
    case Operation::kUpperBound:
      return Points(batch, {batch.values.data(), sizeof(uint32_t)}, *context);
    case Operation::kContains:
      return Points(batch, {batch.found.data(), sizeof(bool)}, *context);
    case Operation::kEqualRange:
      return Positions(RangeBatch::Equal(batch.keys), batch.values, batch.ends, *context);
    case Operation::kPositions:
      return Positions(batch.ranges, batch.values, batch.ends, *context);
    case Operation::kCount: {
      ASSIGN_OR_RETURN(auto* positions, context->Positions(2 * size));
      const absl::Span<Position> begin(positions, size), end(positions + size, size);
      absl::Status status = Positions(batch.ranges, begin, end, *context);
      for (size_t i = 0; status.ok() && i < size; ++i) batch.counts[i] = end[i] - begin[i];
      return status;
    }
    case Operation::kFind:
      return Rows(RangeBatch::Equal(batch.keys), QueryOptions(), batch.matches, *context);
    case Operation::kScan:
      return Rows(batch.ranges, batch.options, batch.matches, *context);
  }
  return absl::OkStatus();
}

}  // namespace cairn::gpu
