#pragma once

#include "cpu_fast/fast/compressed_search.h"

namespace cairn {

// The searches of CompressedPages in plain C++, one query after the other: the reference of the
// SIMD kernels, and what runs where there is none.
template <typename Key>
const CompressedSearch<Key>& ScalarCompressedSearch();

}  // namespace cairn
