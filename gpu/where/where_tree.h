#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device/index_group.h"

namespace cairn::gpu {

// Rows by what they have in one column.
struct WhereSet {
  size_t column = 0;
  std::vector<DeviceKeyRange> ranges;  // ascending; none is empty, and none touches another
  bool null = false;                   // rows without a key, too
};

// A predicate without negations: as a row has one key in a column at most, that of a comparison is
// a comparison with the other keys. Of the sets below one node no two are of one column.
struct WhereTree {
  enum class Kind : uint8_t { kSet, kAnd, kOr };

  Kind kind = Kind::kSet;
  WhereSet set;                     // kSet
  std::vector<WhereTree> children;  // kAnd, kOr: two or more
};

// Ranges as WhereSet has them, of any.
std::vector<DeviceKeyRange> SortedRanges(absl::Span<const DeviceKeyRange> ranges);
// All keys but these, which are as WhereSet has them.
std::vector<DeviceKeyRange> OtherKeys(absl::Span<const DeviceKeyRange> ranges);

// InvalidArgument for a column that is not among `columns`, a list of no predicates, and one nested
// deeper than DeviceIndexGroup::kMaxDepth. Throws std::bad_alloc.
absl::StatusOr<WhereTree> MakeWhereTree(const DevicePredicate& where, size_t columns);

}  // namespace cairn::gpu
