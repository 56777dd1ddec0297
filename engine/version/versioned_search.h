#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/delta/delta.h"

namespace cairn {

// Executes a batch of a SecondaryIndex, including cursors, on a version: over the entries of the
// base and the delta together. `base` executes FindFirst, Find or Positions on only the base's
// entries, with the batch's options. Thread-safe if `base` is.
//
// A point's key is first looked up in the delta's filter; if it is not there, the base's result is
// final. So a batch costs the time of the base, a cached word per key, and for the keys that the
// delta may have changed a cache line of each of its few segments (KeySlots). A range that the base
// has found is located in the segments by its positions (DeltaSegment::places), without a search
// for its keys; its removed entries are counted at their positions. A scan also merges by
// positions, and reads keys only of the delta's entries, if several have the same place.
//
// `index` is CursorTag::OfIndex of the index, for cursors.
absl::Status AnswerVersion(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                           const Batch& batch, const Parallelism& parallelism = {},
                           uint64_t index = 0);

}  // namespace cairn
