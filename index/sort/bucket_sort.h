#pragma once

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

// Sorts on the caller's thread, best where the entries fit the core's cache: entries of a word by
// Highway's vectorized quicksort, of two words by digits. Both keep memory for the next call of
// their thread: 2 MiB at most, and 512 KiB as a rule.

namespace cairn {

// By (key, row id).
void SortBucket(absl::Span<Entry32> entries);
void SortBucket(absl::Span<Entry64> entries);

// Sorts only by the partial keys, and entries with equal ones by address.
void SortByPartialKey(absl::Span<BytesEntry> entries);

}  // namespace cairn
