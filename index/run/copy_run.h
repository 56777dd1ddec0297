#pragma once

#include "cairn/sorted_run.h"

namespace cairn {

// A copy of a run in memory of its own, which is of huge pages where the kernel gives them; a
// mapped file is of pages of 4 KB, and a random read of a large one waits for the page table
// besides. On up to `threads` threads. Throws std::bad_alloc.
SortedRun CopyRun(const SortedRun& run, int threads);

}  // namespace cairn
