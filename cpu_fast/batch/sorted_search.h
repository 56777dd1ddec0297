#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/strategy.h"
#include "cpu_fast/batch/strategy_scratch.h"

// Strategy::kSortBased, after Kim et al., FAST (SIGMOD 2010), section 7: the queries are sorted
// with Highway's vectorized quicksort (the paper: merge sort), those of bytes as records
// (index/sort/record_sort.h), and then answered in order, one of the ways of SortedSearch.
//
// All require checked arguments and throw std::bad_alloc. InvalidArgument where a key to be sorted
// has 4 GiB or more.

namespace cairn {

// Whether no key is less than the one before. Of a batch in no order it looks at few keys only.
bool Ascends(KeyBatch keys);

// Answers keys that ascend, on the calling thread: a part of a batch of `whole` keys in all.
absl::Status SearchAscending(const OrderedIndex& index, const Batch& batch, size_t whole,
                             const StrategyOptions& options);

// Sorts a batch and answers it in the caller's order, on the calling thread.
absl::Status SortBasedSearch(const OrderedIndex& index, const Batch& batch,
                             const StrategyOptions& options, StrategyScratch* scratch);

// Sorts a batch and answers it in the order of its keys, equal ones as they came.
absl::Status KeyOrderSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, const Parallelism& parallelism,
                            StrategyScratchPool* pool);

}  // namespace cairn
