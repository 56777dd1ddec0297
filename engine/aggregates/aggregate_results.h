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

// What a plan asks of some ranges, or groups, before values are made of it: exact, so that results
// of several indexes can be put together. Plain data.
struct AggregateResults {
  // What one input comes to in each: of its kind's.
  struct Input {
    std::vector<IntegerSum> sums;
    std::vector<FloatSum> float_sums;
    ColumnValues extremes;
  };

  explicit AggregateResults(const AggregatePlan& plan) : inputs(plan.inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].extremes.Clear(plan.inputs[i].type);
  }

  // Appends the values of the first `size` to `columns`, which are the plan's. OutOfRange, naming
  // the range by described(i), for a sum that does not fit. Throws std::bad_alloc.
  absl::Status Output(const AggregatePlan& plan, size_t size,
                      absl::FunctionRef<std::string(size_t)> described,
                      absl::Span<ColumnValues> columns) const;
  // Appends those of further ranges. Throws std::bad_alloc.
  void Append(const AggregateResults& more);

  std::vector<uint64_t> entries, keys;  // where the plan counts them
  ListedKeys listed;                    // where it lists keys
  std::vector<Input> inputs;            // as the plan's
};

// What one of several indexes has for some of their ranges: result i is of range ranges[i].
struct PartialResults {
  AggregateResults results;
  std::vector<uint32_t> ranges;
};

// The results of `size` ranges, to each of which several parts may have come: keys that several
// have are counted in each, unless the parts list them. Throws std::bad_alloc.
AggregateResults CombineResults(const AggregatePlan& plan, absl::Span<const PartialResults> parts,
                                size_t size);

// Whether value i of `a` is before value j of `b`, which is of the same type, in the order of keys.
bool IsValueLess(const ColumnValues& a, size_t i, const ColumnValues& b, size_t j);

}  // namespace cairn
