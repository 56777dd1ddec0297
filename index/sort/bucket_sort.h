#pragma once

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

// Sorts on the caller's thread and in place, without allocating: Highway's vectorized quicksort,
// best where the entries fit the core's cache.

namespace cairn {

// By (key, row id).
void SortBucket(absl::Span<Entry32> entries);
void SortBucket(absl::Span<Entry64> entries);

// By the partial keys alone, those that are equal by address.
void SortByPartialKey(absl::Span<BytesEntry> entries);

}  // namespace cairn
