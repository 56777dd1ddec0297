#pragma once

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

// Sorts on the caller's thread, best if the entries fit the core's cache: entries of one word by
// Highway's vectorized quicksort, of two words by digits. Both keep memory for the thread's next
// call: at most 2 MiB, usually 512 KiB.

namespace cairn {

// By (key, row id).
void SortBucket(absl::Span<Entry32> entries);
void SortBucket(absl::Span<Entry64> entries);

// Sorts only by the partial keys, and entries with equal ones by address.
void SortByPartialKey(absl::Span<BytesEntry> entries);

}  // namespace cairn
