#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "cpu_fast/batch/strategy_scratch.h"

// The strategies of cairn/query.h on the CPU, over any OrderedIndex; each is exact for every
// batch. Buffered queries wait in buffers, one for each part of the key range, that are run
// when full. The paper's fourth scheme, a compressed tree, is an index: CompressedTree.

namespace cairn {

// How sorted queries are answered.
enum class SortedSearch : uint8_t {
  kFastest,  // by the ratio of the batch to the run
  kIndex,    // through the index, whose paths neighbouring queries share
  kMerge,    // in one linear pass over the run: the paper's; keys of 32 and 64 bits only
};

struct StrategyOptions {
  Strategy strategy = Strategy::kUnbuffered;
  // The index's keys are distinct, so that Find need not look for a key's second row. That must be
  // so: rows are missing where it is not.
  bool distinct_keys = false;
  SortedSearch sorted_search = SortedSearch::kFastest;
  // Buffered: about so many parts, a power of two up to 1024, each with a buffer of `buffer`
  // queries; fewer parts for a batch that would not fill them. More parts have more to share among
  // the queries of each, but all buffers must stay in the core's cache; short ones leave an index
  // too little to hide its cache misses with. At n = 2^24, u32, cpu:packed, batches of 2^14 and
  // 2^16: 14 ns, unbuffered 18; with 256 parts 18, with buffers of 1024 too 23.
  size_t parts = 64;
  size_t buffer = 256;
};

// index.Execute(batch) by a strategy, on several threads: each takes a part of the batch, of the
// sorted batch for ResultOrder::kKey. Batches of ranges are answered as they are. Thread-safe, as
// the pool is. On one thread a call that is no larger than one before allocates nothing, unless it
// sorts keys of bytes.
//
// ResultOrder::kKey takes a strategy that knows of an order: kSortBased, or any if `sorted_input`;
// query_of then ascends where keys are equal. sorted_input says that nothing need be sorted or
// buffered. It is looked whether the keys do ascend, which costs little; where they do not the
// batch is answered as if nothing had been said, and sorted for ResultOrder::kKey.
//
// Besides OrderedIndex's errors: InvalidArgument for options that do not go together or are out of
// range, or a query_of that is neither empty nor as long as the batch; Unimplemented for keys of
// bytes and SortedSearch::kMerge; ResourceExhausted where memory does not suffice.
absl::Status Execute(const OrderedIndex& index, const Batch& batch, const StrategyOptions& options,
                     const Parallelism& parallelism, StrategyScratchPool* pool);

}  // namespace cairn
