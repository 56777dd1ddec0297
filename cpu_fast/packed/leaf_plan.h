#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cpu_fast/packed/cell_directory.h"
#include "cpu_fast/packed/packed_index.h"
#include "index/layout/packed_leaves.h"

namespace cairn {

// How keys are cut into packed leaves, and the directory that suits them.
template <typename Key>
struct LeafPlan {
  LeafCuts<Key> cuts;
  std::optional<CellDirectory<Key>> cells;  // if empty, use a tree over the cuts' separators
};

// Cuts keys, which must ascend, according to `options`, or by the best choice for these keys, on up
// to `threads` threads. Errors: InvalidArgument for more bits than the keys have;
// FailedPrecondition if kCells is required and the keys are too few or too uneven for it. Throws
// std::bad_alloc.
template <typename Key>
absl::StatusOr<LeafPlan<Key>> PlanLeaves(absl::Span<const Key> keys,
                                         const PackedIndexOptions& options, int threads);

}  // namespace cairn
