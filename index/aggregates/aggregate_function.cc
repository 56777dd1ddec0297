#include "cairn/aggregate.h"

namespace cairn {

std::string_view AggregateFunctionName(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kCount:
      return "count";
    case AggregateFunction::kCountDistinct:
      return "count_distinct";
    case AggregateFunction::kSum:
      return "sum";
    case AggregateFunction::kAvg:
      return "avg";
    case AggregateFunction::kMin:
      return "min";
    case AggregateFunction::kMax:
      return "max";
  }
  return "unknown";
}

}  // namespace cairn
