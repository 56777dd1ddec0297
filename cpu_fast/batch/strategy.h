#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "cpu_fast/batch/strategy_scratch.h"

// The strategies of cairn/query.h on the CPU, for any OrderedIndex. Each gives exact results for
// every batch. The buffered strategy collects queries in one buffer per partition of the key range
// and searches a buffer when it is full. The paper's fourth scheme, a compressed tree, is an index
// of its own: CompressedTree.

namespace cairn {

// How sorted queries are executed.
enum class SortedSearch : uint8_t {
  kFastest,  // chosen by the ratio of batch size to run size
  kIndex,    // through the index; neighboring queries share its paths
  kMerge,    // one linear scan of the run, as in the paper; 32- and 64-bit keys only
};

struct StrategyOptions {
  Strategy strategy = Strategy::kUnbuffered;
  // Promises that the index's keys are distinct, so that Find does not look for a second row of a
  // key. If they are not, rows are missing from the results.
  bool distinct_keys = false;
  SortedSearch sorted_search = SortedSearch::kFastest;
  // Buffered strategy: the approximate number of partitions, a power of two up to 1024, each with a
  // buffer of `buffer` queries. A batch that would not fill the buffers uses fewer partitions. More
  // partitions let the queries of each share more. But all buffers must stay in the core's cache,
  // and short buffers leave an index too few queries to hide its cache misses. At n = 2^24, u32,
  // cpu:packed, batches of 2^14 and 2^16: 14 ns; unbuffered 18 ns; with 256 partitions 18 ns; with
  // buffers of 1024 queries as well 23 ns.
  size_t parts = 64;
  size_t buffer = 256;
};

// Has the same results as index.Execute(batch), using a strategy and several threads: each thread
// takes a slice of the batch, or for ResultOrder::kKey a slice of the sorted batch. Batches of
// ranges are passed to the index unchanged. Thread-safe, because the pool is. On one thread, a call
// that is no larger than an earlier one does not allocate, unless it sorts byte-string keys.
//
// ResultOrder::kKey requires kSortBased, or any strategy with `sorted_input`. query_of then ascends
// among equal keys. `sorted_input` promises that nothing needs to be sorted or buffered. A cheap
// check verifies that the keys ascend; if they do not, the flag is ignored, and ResultOrder::kKey
// sorts the batch.
//
// Errors: those of OrderedIndex, plus: InvalidArgument for incompatible or out-of-range options, or
// a query_of that is neither empty nor as long as the batch; Unimplemented for byte-string keys
// with SortedSearch::kMerge; ResourceExhausted if memory runs out.
absl::Status Execute(const OrderedIndex& index, const Batch& batch, const StrategyOptions& options,
                     const Parallelism& parallelism, StrategyScratchPool* pool);

}  // namespace cairn
