#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/query.h"

namespace cairn {

// Each is InvalidArgument, saying what does not fit, if it is not OK.

// Whether an output of `outputs` elements, called `name` in the message, fits a batch of `queries`.
absl::Status CheckOutput(size_t queries, size_t outputs, std::string_view name);

// Whether a run of `kind` can answer the batch's keys, which are of the run's kind or none, or its
// ranges: as many lower as upper keys, all of that kind, a bound a range or none, and every bound
// one that its end and the kind allow.
absl::Status CheckQueries(PhysicalType kind, const Batch& batch);

// CheckQueries, and whether the operation's answers fit. query_of is not looked at.
absl::Status CheckBatch(PhysicalType kind, const Batch& batch);

}  // namespace cairn
