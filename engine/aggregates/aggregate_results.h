#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/listed_keys.h"
#include "index/aggregates/range_float_sums.h"
#include "index/aggregates/range_sums.h"

namespace cairn {

// Intermediate results: the measures that a plan needs for some ranges or groups, from which output
// values are computed. Measures are exact, so that results of several indexes can be combined.
// Plain data.
struct AggregateResults {
  // The measure of one input in each range. Only the vector of the input's kind is used.
  struct Input {
    std::vector<IntegerSum> sums;
    std::vector<FloatSum> float_sums;
    ColumnValues extremes;
  };

  explicit AggregateResults(const AggregatePlan& plan) : inputs(plan.inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].extremes.Clear(plan.inputs[i].type);
  }

  // Appends the output values of the first `size` ranges to `columns`, one per output of the plan.
  // OutOfRange, naming the range by described(i): a sum does not fit its type. Throws
  // std::bad_alloc.
  absl::Status Output(const AggregatePlan& plan, size_t size,
                      absl::FunctionRef<std::string(size_t)> described,
                      absl::Span<ColumnValues> columns) const;
  // Appends the results of more ranges. Throws std::bad_alloc.
  void Append(const AggregateResults& more);

  // Empty if the plan does not count or list them.
  std::vector<uint64_t> entries, keys;
  ListedKeys listed;
  std::vector<Input> inputs;  // one per input of the plan
};

// The results of one of several indexes for some of their ranges: result i belongs to range
// ranges[i].
struct PartialResults {
  AggregateResults results;
  std::vector<uint32_t> ranges;
};

// Combines parts into the results of `size` ranges. A range may have results in several parts. A
// key in several parts is counted once per part, unless the parts list their keys. Throws
// std::bad_alloc.
AggregateResults CombineResults(const AggregatePlan& plan, absl::Span<const PartialResults> parts,
                                size_t size);

// Returns whether value i of `a` precedes value j of `b` in key order. Both have the same type.
bool IsValueLess(const ColumnValues& a, size_t i, const ColumnValues& b, size_t j);

}  // namespace cairn
