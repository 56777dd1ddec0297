#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"

// What all that computes aggregates has in common: of which types they are, and when a sum is
// none.

namespace cairn {

// "sum(price)".
std::string AggregateText(const Aggregate& aggregate);

// The type of an aggregate of a column of this type. InvalidArgument, naming the aggregate, where
// the function does not take it.
absl::StatusOr<DataType> AggregateType(const Aggregate& aggregate, DataType column);

// Appends an aggregate of `count` integers, kSum or kAvg, that come to `sum`: null if there is
// none. OutOfRange, naming the range or group, which `of` says, and the column, for a sum that does
// not fit its type.
absl::Status AppendIntegers(AggregateFunction function, absl::int128 sum, uint64_t count,
                            absl::FunctionRef<std::string()> of, std::string_view column,
                            ColumnValues* values);
// The same of floats.
void AppendFloats(AggregateFunction function, double sum, uint64_t count, ColumnValues* values);

}  // namespace cairn
