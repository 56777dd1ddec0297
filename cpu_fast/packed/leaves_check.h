#pragma once

#include "absl/status/status.h"
#include "cairn/sorted_run.h"
#include "cpu_fast/packed/stored_leaves.h"

namespace cairn {

// Compares the leaves that a run file has, and their directory, with those that its entries give,
// byte by byte, on up to `threads` threads. `run` is the file's, its order checked. DataLoss,
// naming section and offset, where they differ. Leaves are made some at a time, the directory
// whole: memory as WriteLeaves'. Throws std::bad_alloc.
absl::Status CheckStoredLeaves(const SortedRun& run, const StoredLeaves& stored, int threads);

}  // namespace cairn
