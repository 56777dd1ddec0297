#pragma once

#include <cstdint>
#include <type_traits>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/layout/tree_layout.h"

namespace cairn {

// What a search of a FastTree reads: plain pointers into memory that the tree keeps alive.
//
// Inner nodes hold separators as signed integers, the sign bit flipped: the order is the same, and
// SSE and AVX2 compare signed lanes only. The run's own lines are flipped as they are read.
template <typename Key>
struct FastTreeView {
  using Signed = std::make_signed_t<Key>;

  TreeLayout<Key> layout;
  const Signed* nodes = nullptr;   // layout.lines() lines
  const Key* keys = nullptr;       // layout.entries()
  const Key* last_line = nullptr;  // the last leaf, padded with the greatest key
  const RowId* row_ids = nullptr;  // layout.entries(); null where only positions are asked for
};

// The searches of one SIMD level. Each answers `queries` in order and requires that the tree not
// be empty. Thread-safe; allocates nothing.
template <typename Key>
struct FastTreeSearch {
  using Queries = absl::Span<const Key>;

  // positions[i] = the number of keys less than queries[i].
  void (*lower_bound)(const FastTreeView<Key>& tree, Queries queries, Position* positions);
  // row_ids[i] = the first row of queries[i], or kNoRow.
  void (*find_first)(const FastTreeView<Key>& tree, Queries queries, RowId* row_ids);
};

// The searches of `level`, which CheckSupported must have let pass.
template <typename Key>
const FastTreeSearch<Key>& FastTreeSearchFor(SimdLevel level);

}  // namespace cairn
