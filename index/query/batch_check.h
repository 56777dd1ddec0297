#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/query.h"

namespace cairn {

// Checks of a batch. Errors: InvalidArgument, with the mismatch.

// Checks that an output of `outputs` elements, which messages call `name`, fits a batch of
// `queries`.
absl::Status CheckOutput(size_t queries, size_t outputs, std::string_view name);

// Checks that a run of `kind` can answer the batch's keys or ranges. Keys must be of the run's
// kind. There must be the same number of lower and upper keys, all of that kind, and one bound per
// range or none. Each bound must be one that its end and the kind allow.
absl::Status CheckQueries(PhysicalType kind, const Batch& batch);

// CheckQueries, and checks that the answers of the operation fit. Does not check query_of.
absl::Status CheckBatch(PhysicalType kind, const Batch& batch);

// CheckBatch, for an index whose FindFirst also takes Batch::rows, if Batch::values is empty.
absl::Status CheckBatchWithRows(PhysicalType kind, const Batch& batch);

}  // namespace cairn
