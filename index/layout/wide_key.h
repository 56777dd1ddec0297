#pragma once

#include <cstdint>

namespace cairn {

// A number of 128 bits, for keys that no 64 hold; on CPU and GPU. Standard C++ has none, so
// std::numeric_limits and the like do not know it.
__extension__ typedef unsigned __int128 WideKey;  // NOLINT(modernize-use-using)

}  // namespace cairn
