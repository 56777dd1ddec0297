#pragma once

#include "cpu_fast/fast/fast_tree_search.h"

namespace cairn {

// The searches of a FastTree in plain C++, one query after another. They are the reference for the
// SIMD kernels and the fallback for processors without SIMD.
template <typename Key>
const FastTreeSearch<Key>& ScalarFastTreeSearch();

}  // namespace cairn
