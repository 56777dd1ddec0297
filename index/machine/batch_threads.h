#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace cairn {

// Calls body(i) for every i in [0, parts), on the calling thread and on oneTBB's workers, and
// returns when all calls have. The workers are those of one arena a process, with a slot for each
// physical core, and waking them costs microseconds: this is for the parts of a batch, as
// ParallelFor (index/machine/parallel.h) is for builds. Where cores have several hardware threads a
// worker keeps to the first of each, since two searches on one core wait for the same cache. In a
// child that was forked behind the first call, threads are started for each call instead.
//
// Thread-safe. Throws std::bad_alloc, and what a body throws.
void RunOnBatchThreads(size_t parts, absl::FunctionRef<void(size_t)> body);

}  // namespace cairn
