#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/packed/cell_directory.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/layout/packed_leaves.h"

namespace cairn {

// The origin of the leaves and cells that a search reads.
enum class LeafTrust : uint8_t {
  kFull,  // built by FillLeaves and CellDirectory
  kNone,  // unknown: a search reads nothing else and ends soon, but its results may be anything
};

// The data that a search of packed leaves reads: plain pointers into memory that the index owns.
template <typename Key>
struct PackedView {
  const Leaf* leaves = nullptr;
  size_t leaf_count = 0;  // at least one
  // Null if another directory finds the leaves.
  const Cell* cells = nullptr;
  absl::Span<const CellScale<Key>> groups;
  absl::Span<const Key> bounds;
  absl::Span<const Key> far_bounds;
};

// The searches of one SIMD level for packed leaves with a certain number of key bits. Each writes
// one result per query to `out`, in the order of `queries`. Thread-safe; never allocates.
template <typename Key>
struct PackedSearch {
  // The maximum number of leaves that a search walks past: kMaxTies, plus one if the query is after
  // the last key of the leaf that contains its result.
  static constexpr size_t kMaxWalked = CellDirectory<Key>::kMaxTies + 1;

  using Search = void (*)(const PackedView<Key>& view, absl::Span<const Key> queries,
                          uint32_t* out);

  // Through the cells: positions of lower bounds, and first row ids or kNoRow.
  Search lower_bound;
  Search find_first;
  // The same, but the caller sets out[i] to the starting leaf of query i, less than the number of
  // leaves.
  Search lower_bound_in_leaf;
  Search find_first_in_leaf;
};

// The searches of `level`, which must have passed CheckSupported, for leaves with `bits` key bits.
// `exact` is whether the view's cells are exact (CellDirectory::exact).
template <typename Key>
const PackedSearch<Key>& PackedSearchFor(SimdLevel level, int bits, bool exact,
                                         LeafTrust trust = LeafTrust::kFull);

}  // namespace cairn
