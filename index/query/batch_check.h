#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "cairn/query.h"

namespace cairn {

// OK if a run of `kind` can answer the keys: they are of its kind, or there are none.
// InvalidArgument, naming both kinds.
absl::Status CheckKind(KeyKind kind, const KeyBatch& keys);

// OK if an output of `outputs` elements, called `name` in the message, fits a batch of `queries`.
absl::Status CheckOutput(size_t queries, size_t outputs, std::string_view name);

// OK if a run of `kind` can answer the ranges: as many lower as upper keys, all of its kind, a
// bound a range or none, and every bound one that its end and the kind of keys allow.
absl::Status CheckRanges(KeyKind kind, const RangeBatch& ranges);

}  // namespace cairn
