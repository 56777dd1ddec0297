#pragma once

#include "cpu_fast/packed/packed_search.h"

namespace cairn {

// The searches in plain C++, one query after another: the reference for the SIMD levels.
template <typename Key>
const PackedSearch<Key>& ScalarPackedSearch(int bits);

}  // namespace cairn
