#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "cpu_fast/packed/cell_directory.h"
#include "cpu_fast/simd/simd_level.h"
#include "index/layout/packed_leaves.h"

namespace cairn {

// Who has written the leaves and cells that a search reads.
enum class LeafTrust : uint8_t {
  kFull,  // FillLeaves and CellDirectory
  kNone,  // anybody: a search reads nothing but them, and ends soon, but answers at random
};

// What a search of packed leaves reads: plain pointers into memory that the index keeps alive.
template <typename Key>
struct PackedView {
  const Leaf* leaves = nullptr;
  size_t leaf_count = 0;  // at least one
  // Null where another directory finds the leaves.
  const Cell* cells = nullptr;
  absl::Span<const CellScale<Key>> groups;
  absl::Span<const Key> bounds;
  absl::Span<const Key> far_bounds;
};

// The searches of packed leaves whose keys have a certain number of bits, of one SIMD level. Each
// answers `queries` in order into as many `out`. Thread-safe; allocates nothing.
template <typename Key>
struct PackedSearch {
  // A search walks past so many leaves at most: kMaxTies, and one more where the query lies behind
  // the last key of the leaf that answers for it.
  static constexpr size_t kMaxWalked = CellDirectory<Key>::kMaxTies + 1;

  using Search = void (*)(const PackedView<Key>& view, absl::Span<const Key> queries,
                          uint32_t* out);

  // By way of the cells: positions of lower bounds, and first rows or kNoRow.
  Search lower_bound;
  Search find_first;
  // The same where out[i] is the leaf of query i to begin with, less than the number of leaves.
  Search lower_bound_in_leaf;
  Search find_first_in_leaf;
};

// The searches of `level`, which CheckSupported must have let pass, for leaves of `bits` bits;
// `exact` says whether the view's cells are (CellDirectory::exact).
template <typename Key>
const PackedSearch<Key>& PackedSearchFor(SimdLevel level, int bits, bool exact,
                                         LeafTrust trust = LeafTrust::kFull);

}  // namespace cairn
