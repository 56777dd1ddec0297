#pragma once

#include "cpu_fast/fast/compressed_search.h"

namespace cairn {

// The searches of CompressedPages in plain C++, one query after another. They are the reference for
// the SIMD kernels and the fallback for processors without SIMD.
template <typename Key>
const CompressedSearch<Key>& ScalarCompressedSearch();

}  // namespace cairn
