#pragma once

#include "cpu_fast/strings/partial_key_search.h"

namespace cairn {

// The searches of a PartialKeyTree in plain C++, one query after the other: the reference of the
// SIMD kernels, and what runs where there is none.
const PartialKeySearch& ScalarPartialKeySearch();

}  // namespace cairn
