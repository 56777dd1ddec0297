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
// stands. So a batch costs what the base takes for it, a word in a cache for each key, and a search
// of the delta's few segments for the keys that it may have touched. Count takes the places of each
// range's ends in every run, and the number of removed entries before each of these (PositionSet).
absl::Status AnswerVersion(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                           const Batch& batch, const Parallelism& parallelism = {});

}  // namespace cairn
