#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/delta/delta.h"

namespace cairn {

// Answers a batch of a SecondaryIndex, cursors included, for a version: over the base's entries and
// those of a delta together. `base` answers for the base's entries alone, and is asked FindFirst,
// Find or Positions with the batch's options. Thread-safe, as far as that is.
//
// A point's key is first looked up in the delta's filter: where it is not there, the base's answer
// stands. So a batch costs what the base takes for it, a word in a cache for each key, and for the
// keys that the delta may have touched a line of each of its few segments (KeySlots). A range that
// the base has found is found in the segments by its positions (DeltaSegment::places), without a
// search for its keys; its removed entries are counted where it lies. A scan merges by positions,
// too, and reads keys of the delta's entries alone, where several stand at one place.
absl::Status AnswerVersion(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                           const Batch& batch, const Parallelism& parallelism = {});

}  // namespace cairn
