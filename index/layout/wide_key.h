#pragma once

#include <cstdint>

namespace cairn {

// A number of 128 bits, for keys that need more than 64; on CPU and GPU. Standard C++ has no such
// type, so std::numeric_limits and similar templates do not support it.
__extension__ typedef unsigned __int128 WideKey;  // NOLINT(modernize-use-using)

}  // namespace cairn
