#pragma once

#include "absl/status/status.h"
#include "cairn/sorted_run.h"
#include "cpu_fast/packed/stored_leaves.h"

namespace cairn {

// Rebuilds the leaves and directory of a run file from its entries and compares them byte by byte,
// on up to `threads` threads. `run` must be the run of the file, with its order already checked.
// Leaves are rebuilt a few at a time, the directory as a whole; this uses as much memory as
// WriteLeaves. Errors: DataLoss, naming section and offset, if they differ. Throws std::bad_alloc.
absl::Status CheckStoredLeaves(const SortedRun& run, const StoredLeaves& stored, int threads);

}  // namespace cairn
