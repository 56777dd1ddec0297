// IndexVersion's aggregates of ranges.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/version/aggregate_evaluator.h"
#include "engine/version/index_version.h"
#include "engine/version/range_spans.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The values of consecutive ranges.
struct Slice {
  size_t first = 0;
  std::vector<ColumnValues> values;
};

void Concatenate(std::vector<Slice> slices, std::vector<ColumnValues>* values) {
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.first < b.first; });
  for (size_t i = 0; i < slices.size(); ++i) {
    if (i == 0) {
      *values = std::move(slices[0].values);
      continue;
    }
    for (size_t c = 0; c < values->size(); ++c) {
      (*values)[c].AppendFrom(slices[i].values[c], 0, slices[i].values[c].size());
    }
  }
}

}  // namespace

absl::Status IndexVersion::AggregateRanges(const RangeBatch& ranges,
                                           absl::Span<const Aggregate> aggregates, int threads,
                                           std::vector<ColumnValues>* values) const {
  if (!ranges.after.empty()) {
    return absl::InvalidArgumentError("a range's aggregates are of all of it: expected no cursors");
  }
  ASSIGN_OR_RETURN(const AggregatePlan plan, AggregatePlan::Make(delta->base_columns, aggregates));
  const int all_threads = Topology::Get().Threads(threads);
  RETURN_IF_ERROR(base->Prove(all_threads));
  RangePositions positions;
  RETURN_IF_ERROR(positions.Find(*base, ranges));
  *values = plan.Columns();
  if (ranges.size() == 0) return absl::OkStatus();
  const IndexVersion asked = ToAsk(ranges.size());
  Mutex mutex;
  std::vector<Slice> slices;
  RETURN_IF_ERROR(ForEachSlice(
      ranges.size(), Parallelism{all_threads}, [&](size_t first, size_t count) -> absl::Status {
        AggregateEvaluator evaluator(asked, plan, all_threads);
        Slice slice = {first, plan.Columns()};
        RETURN_IF_ERROR(ForEachSpans(
            *asked.delta, ranges, positions, first, count, [&](const RunSpans& spans, size_t at) {
              return evaluator.Append(
                  spans, [&](size_t i) { return absl::StrFormat("range %d", at + i); },
                  absl::MakeSpan(slice.values));
            }));
        const MutexLock lock(&mutex);
        slices.push_back(std::move(slice));
        return absl::OkStatus();
      }));
  Concatenate(std::move(slices), values);
  return absl::OkStatus();
}

}  // namespace cairn
