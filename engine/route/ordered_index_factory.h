#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/packed/stored_packed_index.h"

namespace cairn {

// Below this number of entries, a tree over the run stays in the first cache levels. It is as fast
// as packed leaves in a fraction of their memory (benchmark PointLookup, n:10 to n:16). So cpu:auto
// uses a tree for such runs.
inline constexpr size_t kMinPackedEntries = size_t{1} << 14;

// Leaves that are stored with a run, and the memory in which they are searched.
struct UsableLeaves {
  StoredLeaves stored;
  LeafMemory memory = LeafMemory::kMapped;
};

// The same as the public MakeOrderedIndex, over a run with stored `leaves`. The structure uses
// these leaves if it would make the same ones; null means that there are none. A GPU structure is
// made on each of `devices` (CUDA ordinals), if there are any.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run,
                                                               const UsableLeaves* leaves,
                                                               absl::Span<const int> devices);

}  // namespace cairn
