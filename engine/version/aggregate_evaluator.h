#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/base_aggregates.h"
#include "engine/aggregates/listed_keys.h"
#include "engine/version/index_version.h"
#include "engine/version/run_spans.h"
#include "engine/version/version_ranges.h"

namespace cairn {

// Computes a plan's aggregates for ranges of a version, some at a time. One object serves one
// thread; structures that are slow to build are shared (BaseAggregates).
//
// In each run, a range has the entries between two positions, without removed ones. In a short
// range, which can have few removed entries, these are searched; otherwise a MaskedRun has the
// remaining ones. Runs are added up, and their extremes are compared by value.
class AggregateEvaluator {
 public:
  // Both must outlive it. `threads` is for structures that are not built yet.
  AggregateEvaluator(const IndexVersion& version, const AggregatePlan& plan, int threads);

  // Sets *results to those of `spans`. Errors: ResourceExhausted, DataLoss. Throws std::bad_alloc.
  absl::Status Evaluate(const RunSpans& spans, AggregateResults* results);
  // Appends the values for `spans` to `columns`, which must be the plan's. Errors: OutOfRange,
  // naming the range by described(i): a sum does not fit; those of Evaluate.
  absl::Status Append(const RunSpans& spans, absl::FunctionRef<std::string(size_t)> described,
                      absl::Span<ColumnValues> columns);

 private:
  DeltaAggregates& delta_aggregates();
  template <typename Measure>
  absl::StatusOr<const typename Measure::Structure*> StructureOf(size_t run, size_t column);
  template <typename Measure>
  absl::Status AddRun(const RunSpans& spans, size_t run, size_t column,
                      absl::Span<typename Measure::Value> values);
  template <typename Measure>
  absl::Status AddRuns(const RunSpans& spans, size_t column,
                       std::vector<typename Measure::Value>* values);
  template <typename Measure>
  absl::Status FindExtremes(const RunSpans& spans, size_t column, ColumnValues* extremes);
  absl::Status ValuesAt(size_t run, size_t column, absl::Span<const Position> positions,
                        ColumnValues* values);
  absl::Status EvaluateInput(const AggregatePlan::Input& input, const RunSpans& spans,
                             AggregateResults::Input* result);
  void CountEntries(const RunSpans& spans, std::vector<uint64_t>* entries) const;
  absl::Status CountKeys(const RunSpans& spans, std::vector<uint64_t>* keys);
  void ListKeys(const RunSpans& spans, ListedKeys* listed) const;

  const IndexVersion& version_;
  const AggregatePlan& plan_;
  const int threads_;
  const Runs runs_;
  std::shared_ptr<DeltaAggregates> delta_aggregates_;
  AggregateResults results_;                         // for Append
  std::vector<std::shared_ptr<const void>> masked_;  // MaskedRuns, by input and run
  size_t input_ = 0;                                 // the input that is being evaluated
  std::vector<Position> piece_begin_, piece_end_;
  std::vector<uint32_t> piece_of_;
};

}  // namespace cairn
