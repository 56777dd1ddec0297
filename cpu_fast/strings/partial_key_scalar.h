#pragma once

#include "cpu_fast/strings/partial_key_search.h"

namespace cairn {

// The searches of a PartialKeyTree in plain C++, one query after another. They are the reference
// for the SIMD kernels and the fallback for processors without SIMD.
const PartialKeySearch& ScalarPartialKeySearch();

}  // namespace cairn
