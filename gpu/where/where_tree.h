#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device/index_group.h"

namespace cairn::gpu {

// A set of rows, defined by their keys in one column.
struct WhereSet {
  size_t column = 0;
  std::vector<DeviceKeyRange> ranges;  // ascending, non-empty and not adjacent
  bool null = false;                   // whether rows without a key are also included
};

// A predicate without negations. A row has at most one key per column, so the negation of a
// comparison is a comparison with the other keys. The sets below one node are of distinct columns.
struct WhereTree {
  enum class Kind : uint8_t { kSet, kAnd, kOr };

  Kind kind = Kind::kSet;
  WhereSet set;                     // kSet
  std::vector<WhereTree> children;  // for kAnd and kOr: two or more
};

// Converts any ranges to the form of WhereSet.
std::vector<DeviceKeyRange> SortedRanges(absl::Span<const DeviceKeyRange> ranges);
// All keys outside these ranges, which must have the form of WhereSet.
std::vector<DeviceKeyRange> OtherKeys(absl::Span<const DeviceKeyRange> ranges);

// Errors: InvalidArgument for a column that is not less than `columns`, an empty list of
// predicates, or nesting deeper than DeviceIndexGroup::kMaxDepth. Throws std::bad_alloc.
absl::StatusOr<WhereTree> MakeWhereTree(const DevicePredicate& where, size_t columns);

}  // namespace cairn::gpu
