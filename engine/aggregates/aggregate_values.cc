#include "engine/aggregates/aggregate_values.h"

#include <limits>

#include "absl/strings/str_format.h"
#include "index/columns/column_type.h"
#include "index/keys/key_number.h"

namespace cairn {
namespace {

template <typename T>
bool IsIn(absl::int128 sum) {
  return sum >= std::numeric_limits<T>::min() && sum <= std::numeric_limits<T>::max();
}

}  // namespace

std::string AggregateText(const Aggregate& aggregate) {
  return absl::StrFormat("%s(%s)", AggregateFunctionName(aggregate.function), aggregate.column);
}

absl::StatusOr<DataType> AggregateType(const Aggregate& aggregate, DataType column) {
  switch (aggregate.function) {
    case AggregateFunction::kSum:
    case AggregateFunction::kAvg:
      if (IsTextOrBytes(column)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("%s: expected a column of numbers, found one of %s",
                            AggregateText(aggregate), DataTypeName(column)));
      }
      if (aggregate.function == AggregateFunction::kAvg || IsFloat(column)) return DataType::kF64;
      return IsSigned(column) ? DataType::kI64 : DataType::kU64;
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return column;
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      break;
  }
  return DataType::kU64;
}

absl::Status AppendIntegers(AggregateFunction function, absl::int128 sum, uint64_t count,
                            absl::FunctionRef<std::string()> of, std::string_view column,
                            ColumnValues* values) {
  if (count == 0 || function == AggregateFunction::kAvg) {
    AppendFloats(function, static_cast<double>(sum), count, values);
    return absl::OkStatus();
  }
  const bool is_signed = values->type() == DataType::kI64;
  if (is_signed ? !IsIn<int64_t>(sum) : !IsIn<uint64_t>(sum)) {
    return absl::OutOfRangeError(
        absl::StrFormat("%s: the sum of column '%s' is %s, which does not fit in %s", of(), column,
                        absl::FormatStreamed(sum), DataTypeName(values->type())));
  }
  if (is_signed) {
    values->AppendNumber(static_cast<int64_t>(sum));
  } else {
    values->AppendNumber(static_cast<uint64_t>(sum));
  }
  return absl::OkStatus();
}

void AppendFloats(AggregateFunction function, double sum, uint64_t count, ColumnValues* values) {
  if (count == 0) {
    values->AppendNull();
  } else {
    values->AppendNumber(function == AggregateFunction::kSum ? sum
                                                             : sum / static_cast<double>(count));
  }
}

}  // namespace cairn
