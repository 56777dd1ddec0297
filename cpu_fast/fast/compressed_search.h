#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/fast/compressed_pages.h"
#include "cpu_fast/simd/simd_level.h"

namespace cairn {

// The searches of one SIMD level in non-empty CompressedPages. On entry, out[i] is the number of
// pages whose minimum is less than queries[i]; each search replaces it by its result. The result is
// therefore in the last of those pages, or is the first entry after it. Thread-safe; never
// allocates.
template <typename Key>
struct CompressedSearch {
  using View = CompressedPagesView<Key>;

  // out[i] = the number of keys less than queries[i].
  void (*lower_bound)(const View& pages, absl::Span<const Key> queries, uint32_t* out);
  // out[i] = the first row of queries[i], or kNoRow.
  void (*find_first)(const View& pages, absl::Span<const Key> queries, uint32_t* out);
};

// The searches of `level`, which must have passed CheckSupported.
template <typename Key>
const CompressedSearch<Key>& CompressedSearchFor(SimdLevel level);

}  // namespace cairn
