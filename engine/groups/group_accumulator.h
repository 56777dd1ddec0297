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

// What one column comes to in each of some groups, as its values are added.
class GroupAccumulator {
 public:
  // For an aggregate of a column of this type, which its function takes (AggregateType). Throws
  // std::bad_alloc, as do Add and Append.
  static std::unique_ptr<GroupAccumulator> Make(const Aggregate& aggregate, DataType column);
  virtual ~GroupAccumulator() = default;

  // Adds value i of a column to group groups[i], which is less than `end`; `end` never falls.
  virtual void Add(const ColumnValues& column, absl::Span<const uint32_t> groups, size_t end) = 0;
  // Appends the aggregate of each of `end` groups. OutOfRange, naming the group by described(i),
  // for a sum that does not fit.
  virtual absl::Status Append(size_t end, absl::FunctionRef<std::string(size_t)> described,
                              ColumnValues* values) = 0;
};

}  // namespace cairn
