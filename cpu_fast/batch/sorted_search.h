#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch/strategy.h"
#include "cpu_fast/batch/strategy_scratch.h"

// Strategy::kSortBased, after Kim et al., FAST (SIGMOD 2010), section 7: the queries are sorted and
// then executed in order by one of the methods of SortedSearch. Fixed-width keys are sorted by
// Highway's vectorized quicksort (the paper uses merge sort), byte strings as records
// (index/sort/record_sort.h).
//
// All functions require checked arguments and throw std::bad_alloc. Errors: InvalidArgument if a
// key to sort has 4 GiB or more.

namespace cairn {

// Whether no key is less than the key before it. For an unsorted batch, this reads only a few keys.
bool Ascends(KeyBatch keys);

// Executes ascending keys on the calling thread. `whole` is the number of keys in the whole batch,
// and `batch` may be a slice of it.
absl::Status SearchAscending(const OrderedIndex& index, const Batch& batch, size_t whole,
                             const StrategyOptions& options);

// Sorts a batch and executes it on the calling thread. Results are in the caller's order.
absl::Status SortBasedSearch(const OrderedIndex& index, const Batch& batch,
                             const StrategyOptions& options, StrategyScratch* scratch);

// Sorts a batch and executes it. Results are in key order; equal keys keep the caller's order.
absl::Status KeyOrderSearch(const OrderedIndex& index, const Batch& batch,
                            const StrategyOptions& options, const Parallelism& parallelism,
                            StrategyScratchPool* pool);

}  // namespace cairn
