#pragma once

#include "cpu_fast/packed/packed_search.h"

namespace cairn {

// The searches in plain C++, one query after the other: what the SIMD levels are checked against.
template <typename Key>
const PackedSearch<Key>& ScalarPackedSearch(int bits);

}  // namespace cairn
