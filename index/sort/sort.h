#pragma once

#include "absl/types/span.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Sorts entries by (key, row id), on up to `threads` threads of which the caller's is one. Exact
// duplicates are kept. What takes more than one thread takes memory for as many entries again; a
// thread alone takes 512 KiB, which it keeps. Throws std::bad_alloc, and may leave entries twice,
// and others out, then.
//
// Entries are split into buckets of keys (bucket_split.h), each then sorted in cache: of numbers by
// digits or by Highway's vectorized quicksort (bucket_sort.h), of bytes by partial keys
// (record_sort.h). The split samples the keys, and compares row ids where keys repeat, so that no
// distribution overloads a bucket.
void SortEntries(absl::Span<Entry32> entries, int threads);
void SortEntries(absl::Span<Entry64> entries, int threads);
// The partial keys need not be set, and are unspecified afterwards.
void SortEntries(absl::Span<BytesEntry> entries, int threads);

}  // namespace cairn
