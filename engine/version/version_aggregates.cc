// IndexVersion's aggregates of ranges.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/version/aggregate_evaluator.h"
#include "engine/version/index_version.h"
#include "engine/version/range_spans.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The aggregates of consecutive ranges, from the range `first` on. Values is std::vector of
// ColumnValues, one per column, or AggregateResults.
template <typename Values>
struct Slice {
  size_t first = 0;
  Values values;
};

void AppendTo(const std::vector<ColumnValues>& more, std::vector<ColumnValues>* values) {
  for (size_t c = 0; c < values->size(); ++c) (*values)[c].AppendFrom(more[c], 0, more[c].size());
}
void AppendTo(const AggregateResults& more, AggregateResults* results) {
  results->Append(more);
}

// Sets *values, initially `none`, by calling take(spans, at, evaluator, values) for some ranges
// from `at` on at a time, on several threads.
template <typename Values, typename Take>
absl::Status EvaluateRanges(const IndexVersion& version, const RangeBatch& ranges,
                            const AggregatePlan& plan, int threads, const StopCondition& stop,
                            const Values& none, Values* values, Take take) {
  if (!ranges.after.empty()) {
    return absl::InvalidArgumentError("expected no cursors: aggregates cover whole ranges");
  }
  RETURN_IF_ERROR(stop.Check());
  RETURN_IF_ERROR(version.base->Prove(threads));
  RangePositions positions;
  RETURN_IF_ERROR(positions.Find(*version.base, ranges, stop));
  *values = none;
  if (ranges.size() == 0) return absl::OkStatus();
  const IndexVersion asked = version.ToAsk(ranges.size());
  Mutex mutex;
  std::vector<Slice<Values>> slices;
  RETURN_IF_ERROR(ForEachSlice(
      ranges.size(), Parallelism{threads}, [&](size_t first, size_t count) -> absl::Status {
        AggregateEvaluator evaluator(asked, plan, threads);
        Slice<Values> slice = {first, none};
        RETURN_IF_ERROR(ForEachSpans(*asked.delta, ranges, positions, first, count,
                                     [&](const RunSpans& spans, size_t at) -> absl::Status {
                                       RETURN_IF_ERROR(stop.Check());
                                       return take(spans, at, &evaluator, &slice.values);
                                     }));
        const MutexLock lock(&mutex);
        slices.push_back(std::move(slice));
        return absl::OkStatus();
      }));
  std::sort(slices.begin(), slices.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  *values = std::move(slices[0].values);
  for (size_t i = 1; i < slices.size(); ++i) AppendTo(slices[i].values, values);
  return absl::OkStatus();
}

}  // namespace

absl::Status IndexVersion::AggregateRanges(const RangeBatch& ranges,
                                           absl::Span<const Aggregate> aggregates, int threads,
                                           const StopCondition& stop,
                                           std::vector<ColumnValues>* values) const {
  ASSIGN_OR_RETURN(const AggregatePlan plan,
                   AggregatePlan::Make(delta->base_columns.columns(), aggregates));
  return EvaluateRanges(*this, ranges, plan, Topology::Get().Threads(threads), stop, plan.Columns(),
                        values,
                        [](const RunSpans& spans, size_t at, AggregateEvaluator* evaluator,
                           std::vector<ColumnValues>* columns) {
                          return evaluator->Append(
                              spans, [&](size_t i) { return absl::StrFormat("range %d", at + i); },
                              absl::MakeSpan(*columns));
                        });
}

absl::Status IndexVersion::AggregateRanges(const RangeBatch& ranges, const AggregatePlan& plan,
                                           int threads, const StopCondition& stop,
                                           AggregateResults* results) const {
  return EvaluateRanges(*this, ranges, plan, Topology::Get().Threads(threads), stop,
                        AggregateResults(plan), results,
                        [&](const RunSpans& spans, size_t, AggregateEvaluator* evaluator,
                            AggregateResults* all) -> absl::Status {
                          AggregateResults next(plan);
                          RETURN_IF_ERROR(evaluator->Evaluate(spans, &next));
                          all->Append(next);
                          return absl::OkStatus();
                        });
}

}  // namespace cairn
