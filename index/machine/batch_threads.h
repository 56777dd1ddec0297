#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace cairn {

// Calls body(i) for every i in [0, parts), on the calling thread and on oneTBB's workers, and
// returns when all calls have returned. The workers belong to one arena per process, with a slot
// for each physical core. Waking them costs microseconds, so this is for the parts of a batch, as
// ParallelFor (index/machine/parallel.h) is for builds. If cores have several hardware threads,
// workers run on the first one of each core, since two searches on one core compete for its cache.
// In a child that was forked after the first call, each call starts threads instead.
//
// Thread-safe. Throws std::bad_alloc, and exceptions of `body`.
void RunOnBatchThreads(size_t parts, absl::FunctionRef<void(size_t)> body);

}  // namespace cairn
