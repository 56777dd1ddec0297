#pragma once

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/strategy.h"
#include "cpu_fast/batch/strategy_scratch.h"

namespace cairn {

// Strategy::kBuffered: each query goes to the buffer of the part of the run that its key belongs
// to, and a part's queries are searched together, so that they share cache lines and TLB entries:
// the buffered search of Kim et al., FAST (SIGMOD 2010), section 7.
//
// Two deviations. Parts are ranges of keys that a sample of the run gives (PartMap), not the
// subtrees below a tree's first page, so that this works for every ordered index; the way from the
// root to a part's subtree, walked once more, is cached by the part's first queries. Keys of bytes
// are told apart by the first eight bytes behind those that all of the run's have in common. The
// threshold at which all buffers are run is the end of the batch.
//
// In the caller's order, on the calling thread. Requires checked arguments. Throws std::bad_alloc.
absl::Status BufferedSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, StrategyScratch* scratch);

}  // namespace cairn
