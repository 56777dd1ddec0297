#pragma once

#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/layout/tree_layout.h"

namespace cairn {

// The data that a search of a FastTree reads: plain pointers into memory that the tree owns.
//
// Inner nodes store separators as signed integers with the sign bit flipped. This keeps their
// order, and SSE and AVX2 compare signed lanes only. The run's own lines are flipped when they are
// read.
template <typename Key>
struct FastTreeView {
  using Signed = std::make_signed_t<Key>;

  TreeLayout<Key> layout;
  const Signed* nodes = nullptr;   // layout.lines() lines
  const Key* keys = nullptr;       // layout.entries()
  const Key* last_line = nullptr;  // the last leaf, padded with the maximum key
  const RowId* row_ids = nullptr;  // layout.entries(); null if only positions are needed
};

// The searches of one SIMD level. Each writes its results in the order of `queries`. The tree must
// not be empty. Thread-safe; never allocates.
template <typename Key>
struct FastTreeSearch {
  using Queries = absl::Span<const Key>;

  // positions[i] = the number of keys less than queries[i].
  void (*lower_bound)(const FastTreeView<Key>& tree, Queries queries, Position* positions);
  // row_ids[i] = the first row of queries[i], or kNoRow.
  void (*find_first)(const FastTreeView<Key>& tree, Queries queries, RowId* row_ids);
};

// The searches of `level`, which must have passed CheckSupported.
template <typename Key>
const FastTreeSearch<Key>& FastTreeSearchFor(SimdLevel level);

}  // namespace cairn
