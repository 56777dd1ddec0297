#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"

namespace cairn {

// How a batch is spread over threads. A structure's own search is single-threaded; this is the one
// place where a batch becomes several.
struct Parallelism {
  int threads = 1;             // at most; 1: the calling thread does it all
  size_t min_slice = 1 << 14;  // queries; a smaller part is not worth waking a thread for
};

// How many parts that makes of so many queries, one at least.
size_t SliceCount(size_t queries, const Parallelism& parallelism);

// Calls body(first, count) for consecutive parts of [0, size), on several threads at a time where
// there is work for them. Returns an error of one part, if any; other parts may have run. A single
// part, and a batch too small for two, runs on the calling thread.
absl::Status ForEachSlice(size_t size, const Parallelism& parallelism,
                          absl::FunctionRef<absl::Status(size_t first, size_t count)> body);

// index.Execute(batch), to the same outcome, on several threads. Of Find and Scan each thread has
// its part of the matches to write; scratch of eight bytes a query is allocated for it, so unlike
// on one thread a warm call is not free of allocations. ResourceExhausted where memory does not
// suffice.
absl::Status Execute(const OrderedIndex& index, const Batch& batch, const Parallelism& parallelism);

}  // namespace cairn
