#pragma once

#include "cpu_fast/fast/fast_tree_search.h"

namespace cairn {

// The searches of a FastTree in plain C++, one query after the other: the reference of the SIMD
// kernels, and what runs where there is none.
template <typename Key>
const FastTreeSearch<Key>& ScalarFastTreeSearch();

}  // namespace cairn
