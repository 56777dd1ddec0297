#pragma once

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/strategy.h"
#include "cpu_fast/batch/strategy_scratch.h"

namespace cairn {

// Strategy::kBuffered: each query goes to the buffer of the partition that contains its key. The
// queries of a partition are searched together, so that they share cache lines and TLB entries.
// This is the buffered search of Kim et al., FAST (SIGMOD 2010), section 7.
//
// There are three deviations from the paper. First, partitions are key ranges derived from a sample
// of the run (PartMap), not the subtrees below a tree's first page. This works for every ordered
// index; each query repeats the path from the root to its partition's subtree, which the
// partition's first queries have brought into the cache. Second, byte-string keys are partitioned
// by the eight bytes after the common prefix of the run's keys. Third, partly filled buffers are
// searched at the end of the batch, not at a threshold.
//
// Results are in the caller's order. Runs on the calling thread. Requires checked arguments. Throws
// std::bad_alloc.
absl::Status BufferedSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, StrategyScratch* scratch);

}  // namespace cairn
