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

// Shared by all code that computes aggregates: the types of results, and the check that a sum fits
// its type.

namespace cairn {

// "sum(price)".
std::string AggregateText(const Aggregate& aggregate);

// Returns the type of an aggregate of a column of this type. InvalidArgument, naming the aggregate:
// the function does not take columns of this type.
absl::StatusOr<DataType> AggregateType(const Aggregate& aggregate, DataType column);

// Appends the kSum or kAvg of `count` integers whose sum is `sum`; null if `count` is 0.
// OutOfRange: the sum does not fit its type; the message names the range or group, by of(), and the
// column.
absl::Status AppendIntegers(AggregateFunction function, absl::int128 sum, uint64_t count,
                            absl::FunctionRef<std::string()> of, std::string_view column,
                            ColumnValues* values);
// The same for floats.
void AppendFloats(AggregateFunction function, double sum, uint64_t count, ColumnValues* values);

}  // namespace cairn
