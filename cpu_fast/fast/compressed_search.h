#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/fast/compressed_pages.h"
#include "cpu_fast/simd/simd_level.h"

namespace cairn {

// The searches of one SIMD level in CompressedPages that are not empty. Each is given, in out[i],
// the number of pages whose minimum is less than queries[i], and replaces it by the answer. So the
// answer is in the last of those pages, or it is the first entry behind it. Thread-safe; allocates
// nothing.
template <typename Key>
struct CompressedSearch {
  using View = CompressedPagesView<Key>;

  // out[i] = the number of keys less than queries[i].
  void (*lower_bound)(const View& pages, absl::Span<const Key> queries, uint32_t* out);
  // out[i] = the first row of queries[i], or kNoRow.
  void (*find_first)(const View& pages, absl::Span<const Key> queries, uint32_t* out);
};

// The searches of `level`, which CheckSupported must have let pass.
template <typename Key>
const CompressedSearch<Key>& CompressedSearchFor(SimdLevel level);

}  // namespace cairn
