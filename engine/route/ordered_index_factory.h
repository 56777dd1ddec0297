#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/packed/stored_packed_index.h"

namespace cairn {

// Leaves that are stored beside a run, and where they are to be searched.
struct UsableLeaves {
  StoredLeaves stored;
  LeafMemory memory = LeafMemory::kMapped;
};

// MakeOrderedIndex over a run beside which `leaves` are stored: they are used where the structure
// would make the same. Null: there are none.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeOrderedIndex(std::string_view factory,
                                                               SortedRun run,
                                                               const UsableLeaves* leaves);

}  // namespace cairn
