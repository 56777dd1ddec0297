#pragma once

#include "cairn/sorted_run.h"

namespace cairn {

// Copies a run into separate memory, on up to `threads` threads. The copy uses huge pages if the
// kernel has any. A mapped file has pages of 4 KB, so random reads of a large one also wait for the
// page table. Throws std::bad_alloc.
SortedRun CopyRun(const SortedRun& run, int threads);

}  // namespace cairn
