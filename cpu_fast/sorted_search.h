#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cpu_fast/batch_answer.h"
#include "cpu_fast/strategy.h"

namespace cairn {

// Strategy::kSortBased, after Kim et al., FAST (SIGMOD 2010), section 7: the queries are sorted
// with Highway's vectorized quicksort (the paper: merge sort), those of bytes by their first eight
// bytes and then by comparison, and then answered in order, one of the ways of SortedSearch. Sets
// scratch->permutation() for ResultOrder::kKey. Requires checked arguments; throws std::bad_alloc.
absl::Status SortBasedSearch(const OrderedIndex& index, Answer answer, KeyBatch keys,
                             const StrategyOptions& options, StrategyScratch* scratch,
                             absl::Span<uint32_t> out);

}  // namespace cairn
