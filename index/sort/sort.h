#pragma once

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Sorts entries by (key, row id) on up to `threads` threads, including the caller's. Exact
// duplicates are kept. Several threads need memory for a second copy of the entries; one thread
// needs 512 KiB, which it keeps. Throws std::bad_alloc; then some entries may be duplicated and
// others missing.
//
// Entries are split into buckets of keys (bucket_split.h), each then sorted in cache: numbers by
// digits or by Highway's vectorized quicksort (bucket_sort.h), byte strings by partial keys
// (record_sort.h). The split samples the keys, and compares row ids if keys repeat, so that no
// distribution overloads a bucket.
void SortEntries(absl::Span<Entry32> entries, int threads);
void SortEntries(absl::Span<Entry64> entries, int threads);
// The partial keys need not be set, and are unspecified afterwards.
void SortEntries(absl::Span<BytesEntry> entries, int threads);

}  // namespace cairn
