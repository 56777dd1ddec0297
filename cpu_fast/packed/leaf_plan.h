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
  std::optional<CellDirectory<Key>> cells;  // none: a tree over the cuts' separators
};

// Cuts keys, which must ascend, as `options` say or as suits them best, on up to `threads` threads.
// InvalidArgument for bits that the keys do not have; FailedPrecondition where kCells is asked for
// and the keys are too uneven for it. Throws std::bad_alloc.
template <typename Key>
absl::StatusOr<LeafPlan<Key>> PlanLeaves(absl::Span<const Key> keys,
                                         const PackedIndexOptions& options, int threads);

}  // namespace cairn
