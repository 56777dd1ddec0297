#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"

namespace cairn {

// Accumulates the aggregate of one column for each of some groups.
class GroupAccumulator {
 public:
  // Requires that the aggregate's function takes columns of this type (AggregateType). Make, Add
  // and Append throw std::bad_alloc.
  static std::unique_ptr<GroupAccumulator> Make(const Aggregate& aggregate, DataType column);
  virtual ~GroupAccumulator() = default;

  // Adds value i of a column to group groups[i]. All groups are less than `end`, which must not
  // decrease between calls.
  virtual void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) = 0;
  // Appends the aggregate of each of `end` groups. OutOfRange, naming the group by described(i): a
  // sum does not fit its type.
  virtual absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)> described,
                              ColumnValues* values) = 0;
};

}  // namespace cairn
