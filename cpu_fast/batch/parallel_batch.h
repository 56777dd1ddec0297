#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Queries that are executed between two checks of a stop condition: some milliseconds of work.
inline constexpr size_t kStopSlice = size_t{1} << 15;

// How a batch is split across threads. The search of each structure is single-threaded; only the
// functions below split a batch.
struct Parallelism {
  int threads = 1;             // maximum; with 1 the calling thread does all the work
  size_t min_slice = 1 << 14;  // in queries; a smaller slice does not justify waking a thread
  // Checked before each piece of at most kStopSlice queries of a longer slice.
  StopCondition stop = {};
};

// The number of slices for a batch of `queries` queries; at least 1.
size_t SliceCount(size_t queries, const Parallelism& parallelism);

// Calls body(first, count) for consecutive slices of [0, size), in parallel if there is enough
// work. A batch that is too small to split runs on the calling thread. Errors: those of `body`, of
// one slice if several fail, while other slices may have run; those of the stop condition;
// ResourceExhausted.
absl::Status ForEachSlice(size_t size, const Parallelism& parallelism,
                          absl::FunctionRef<absl::Status(size_t first, size_t count)> body);

// Has the same result as index.Execute(batch), but uses several threads. For Find and Scan, each
// thread writes its part of the matches. This requires temporary memory of eight bytes per query,
// so a warm call allocates too, unless the batch is one short slice. Errors: those of index.Execute
// and of the stop condition; ResourceExhausted if memory runs out.
absl::Status Execute(const OrderedIndex& index, const Batch& batch, const Parallelism& parallelism);

}  // namespace cairn
